import { apiErrorCodes, describeApiError } from '../../lib/contract/v3/errors';
import { errorExample } from '../../lib/contract/v3/openapi-examples';
import { predictionCodeMeanings, unusedPredictionCodes } from '../../lib/contract/v3/prediction';
import { Code, Section, Table, Text } from './parts';

/** Only a computing tab meets these. */
const ofWorkers = new Set(['LEASE_LOST', 'OUTPUT_REJECTED']);

/** Every refusal and every code of a failed prediction, from the contract’s own tables. */
export function Errors() {
  const codes = apiErrorCodes.filter((code) => !ofWorkers.has(code));
  return (
    <>
      <Section id="errors" title="Errors">
        <p>
          A refused request has an HTTP status and this body. Decide by <code>error_code</code>;{' '}
          <code>message</code> is for people. A refusal below 500 changed nothing.
        </p>
        <Code label="A refusal" text={JSON.stringify(errorExample, null, 2)} />
        <Table
          label="Every error code"
          columns={['Status', 'error_code', 'Meaning', 'What to do']}
          rows={codes.map((code) => {
            const { status, message, remedy } = describeApiError(code);
            return [
              status,
              <code key={code}>{code}</code>,
              message,
              <Text key="remedy">{remedy}</Text>,
            ];
          })}
        />
        <p>
          Repeat a request after 429 and 503, after the seconds of <code>Retry-After</code>. Repeat
          a submission only with an <code>Idempotency-Key</code>: then you get the first answer and
          not a second video.
        </p>
      </Section>
      <Section id="prediction-codes" title="Codes of a failed prediction">
        <p>
          A prediction that failed is read with HTTP 200 like any other: <code>data.status</code> is{' '}
          <code>failed</code>, <code>data.error</code> says why, <code>data.code</code> is one of
          these. Clients may know {unusedPredictionCodes.join(', ')} too; this server does not send
          them.
        </p>
        <Table
          label="Codes of predictions"
          columns={['data.code', 'Meaning']}
          rows={predictionCodeMeanings.map(({ code, meaning }) => [
            code,
            <Text key={code}>{meaning}</Text>,
          ])}
        />
      </Section>
    </>
  );
}

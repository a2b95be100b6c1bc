import {
  apiErrorCodes,
  describeApiError,
  errorExample,
  predictionCodeMeanings,
  unusedPredictionCodes,
} from '../../lib/contract/v3';
import { Code, Section, Table, Text } from './parts';

/** Codes of the worker protocol. */
const workerCodes = new Set(['LEASE_LOST', 'OUTPUT_REJECTED']);

/** All error codes and all codes of failed predictions, from the tables of the contract. */
export function Errors() {
  const codes = apiErrorCodes.filter((code) => !workerCodes.has(code));
  return (
    <>
      <Section id="errors" title="Errors">
        <p>
          A failed request has an HTTP status and this body. Programs should use{' '}
          <code>error_code</code>; <code>message</code> is for people. A request with a status below
          500 has changed nothing.
        </p>
        <Code label="An error" text={JSON.stringify(errorExample, null, 2)} />
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
          A failed prediction has HTTP 200 like any other: <code>data.status</code> is{' '}
          <code>failed</code>, <code>data.error</code> says why, <code>data.code</code> is one of
          these. Clients may also know {unusedPredictionCodes.join(', ')}, which this server does
          not send.
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

import type { ReactNode } from 'react';
import { type ErrorRecord, generalTexts } from '../../lib/contract';
import { Problem } from '../shared/messages';
import { errorTexts, t } from '../texts';
import '../texts/en/models';
import type { Added, Said } from './page-state';

/** What came of the last thing that was done: at work, done, or what is wrong. */
export function Outcome(props: {
  doing: string | undefined;
  done: Said | undefined;
  problem: ErrorRecord | undefined;
}) {
  const { doing, done, problem } = props;
  return (
    <div role="status" className="notice">
      {doing && <p className="field-hint">{doing}</p>}
      {!doing && typeof done === 'string' && <p className="info">{done}</p>}
      {!doing && typeof done === 'object' && <div className="info">{done.map(lineOf)}</div>}
      {!doing && problem && <LibraryProblem error={problem} />}
    </div>
  );
}

/** What came of a file, in a line. */
function lineOf({ name, error }: Added): ReactNode {
  if (!error) return <p key={name}>{`✓ ${name}`}</p>;
  return (
    <details key={name} data-code={error.code}>
      <summary>{`✗ ${name}: ${reasonOf(error)}`}</summary>
      <p>{error.message}</p>
    </details>
  );
}

function reasonOf({ code, message, remedy }: ErrorRecord): string {
  const [, base] = (code === 'LORA_WRONG_BASE' && /base model \((.+?)\)/.exec(message)) || [];
  if (base) return t('models.madeFor', { base });
  return errorTexts({ code, message: generalTexts(code).message, remedy }).message;
}

/** An error of the library, with a link to the page that helps, where there is one. */
export function LibraryProblem({ error }: { error: ErrorRecord }) {
  const { code, message } = error;
  const [page] = (code === 'HUB_DENIED' && /https?:\/\/\S+$/.exec(message)) || [];
  return (
    <Problem error={error}>
      {page && (
        <a href={page} target="_blank" rel="noreferrer">
          {t('models.openRepository')}
        </a>
      )}
    </Problem>
  );
}

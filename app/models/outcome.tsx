import type { ErrorRecord } from '../../lib/contract';
import { Problem } from '../shared/messages';
import { t } from '../texts';
import '../texts/en/models';

/** What came of the last thing that was done: at work, done, or what is wrong. */
export function Outcome(props: {
  doing: string | undefined;
  done: string | undefined;
  problem: ErrorRecord | undefined;
}) {
  const { doing, done, problem } = props;
  return (
    <div role="status" className="notice">
      {doing && <p className="field-hint">{doing}</p>}
      {!doing && done && <p className="info">{done}</p>}
      {!doing && problem && <LibraryProblem error={problem} />}
    </div>
  );
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

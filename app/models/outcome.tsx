import Link from 'next/link';
import type { ErrorRecord } from '../../lib/contract/errors';
import { Problem } from '../shared/messages';

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
      {!doing && problem && (
        <Problem error={problem}>
          {problem.code === 'TERMS_NOT_ACCEPTED' && (
            <Link href="/terms">Read the terms of use</Link>
          )}
        </Problem>
      )}
    </div>
  );
}

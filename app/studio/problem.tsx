import type { ReactNode } from 'react';
import type { ErrorRecord } from '../../lib/contract/errors';

/** A failure as a sentence with its remedy. */
export function Problem({ error, children }: { error: ErrorRecord; children?: ReactNode }) {
  return (
    <div className="problem" data-code={error.code}>
      <p>
        <strong>{error.message}</strong> {error.remedy}
      </p>
      {children && <div className="actions">{children}</div>}
    </div>
  );
}

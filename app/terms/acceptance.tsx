'use client';

import { Problem } from '../shared/messages';
import { accept, useTerms } from '../shared/terms-store';

/** Whether the terms are accepted on this device, and the button that accepts them. */
export function Acceptance() {
  const { acceptance, error } = useTerms({ known: true });
  return (
    <div className="acceptance">
      <p role="status">{acceptance && `Accepted on this device on ${dateOf(acceptance.at)}.`}</p>
      {error && <Problem error={error} />}
      {acceptance === null && (
        <button type="button" className="primary" onClick={() => void accept()}>
          Accept
        </button>
      )}
    </div>
  );
}

function dateOf(iso: string): string {
  return new Date(iso).toLocaleDateString(undefined, { dateStyle: 'long' });
}

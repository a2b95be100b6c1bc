'use client';

import { Problem } from '../shared/messages';
import { accept, useTerms } from '../shared/terms-store';
import { t } from '../texts';
import { formatDate } from '../texts/format';

/** Whether the terms are accepted on this device, and the button that accepts them. */
export function Acceptance() {
  const { acceptance, error } = useTerms({ known: true });
  return (
    <div className="acceptance">
      <p role="status">
        {acceptance &&
          t('shared.termsAccepted', { date: formatDate(acceptance.at, { dateStyle: 'long' }) })}
      </p>
      {error && <Problem error={error} />}
      {acceptance === null && (
        <button type="button" className="primary" onClick={() => void accept()}>
          {t('shared.accept')}
        </button>
      )}
    </div>
  );
}

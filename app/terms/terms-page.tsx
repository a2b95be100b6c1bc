'use client';

import { termsVersion } from '../../lib/contract';
import { Page } from '../shared/app-page';
import { Button } from '../shared/button';
import { Problem } from '../shared/messages';
import { accept, useTerms } from '../shared/terms-store';
import { TermsText } from '../shared/terms-text';
import { t } from '../texts';
import { formatDate } from '../texts/format';

/** The terms of use, and whether they are accepted. */
export function TermsPage() {
  return (
    <Page name="common.termsOfUse">
      <article className="panel">
        <p className="field-hint">{t('shared.termsWhen', { version: termsVersion })}</p>
        <TermsText level={2} />
        <Acceptance />
      </article>
    </Page>
  );
}

/** Whether the terms are accepted on this device, and the button that accepts them. */
function Acceptance() {
  const { acceptance, error } = useTerms({ known: true });
  return (
    <div className="acceptance stack gap-14 ruled">
      <p role="status">
        {acceptance &&
          t('shared.termsAccepted', { date: formatDate(acceptance.at, { dateStyle: 'long' }) })}
      </p>
      {error && <Problem error={error} />}
      {acceptance === null && (
        <Button className="primary" onClick={() => void accept()}>
          {t('shared.accept')}
        </Button>
      )}
    </div>
  );
}

'use client';

import { termsVersion } from '../../lib/contract/terms';
import { TermsText } from '../shared/terms-text';
import { TextPage } from '../shared/text-page';
import { t } from '../texts';
import { Acceptance } from './acceptance';

/** The terms of use, and whether they are accepted. */
export function TermsPage() {
  return (
    <TextPage title={t('common.termsOfUse')}>
      <article className="panel">
        <p className="field-hint">{t('shared.termsWhen', { version: termsVersion })}</p>
        <TermsText level={2} />
        <Acceptance />
      </article>
    </TextPage>
  );
}

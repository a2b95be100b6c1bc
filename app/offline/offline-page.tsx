'use client';

import { Page } from '../shared/app-page';
import { t } from '../texts';

/** Shown for a page that is not stored and whose server cannot be reached. */
export function OfflinePage() {
  return (
    <Page name="common.noConnection">
      <article className="panel">
        <p>{t('common.noConnectionText')}</p>
      </article>
    </Page>
  );
}

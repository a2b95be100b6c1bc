'use client';

import { TextPage } from '../shared/text-page';
import { t } from '../texts';

/** Shown for a page that is not stored and whose server cannot be reached. */
export function OfflinePage() {
  return (
    <TextPage title={t('common.noConnection')}>
      <article className="panel">
        <p>{t('common.noConnectionText')}</p>
      </article>
    </TextPage>
  );
}

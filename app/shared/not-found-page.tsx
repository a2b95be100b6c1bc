'use client';

import { t } from '../texts';
import { linkTo } from './link';
import { TextPage } from './text-page';

/** What stands where there is no page. */
export function NotFoundPage() {
  return (
    <TextPage title={t('common.notFound')}>
      <article className="panel">
        <p>
          {t.rich('common.notFoundText', {
            studio: linkTo('/'),
          })}
        </p>
      </article>
    </TextPage>
  );
}

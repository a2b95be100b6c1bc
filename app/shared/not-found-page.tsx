'use client';

import Link from 'next/link';
import { t } from '../texts';
import { TextPage } from './text-page';

/** What stands where there is no page. */
export function NotFoundPage() {
  return (
    <TextPage title={t('common.notFound')}>
      <article className="panel">
        <p>
          {t.rich('common.notFoundText', {
            studio: (name) => (
              <Link href="/" prefetch={false}>
                {name}
              </Link>
            ),
          })}
        </p>
      </article>
    </TextPage>
  );
}

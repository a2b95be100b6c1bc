'use client';

import { Page } from './shared/app-page';
import { linkTo } from './shared/link';
import { t } from './texts';

/** What stands where there is no page. */
export default function NotFound() {
  return (
    <Page name="common.notFound">
      <article className="panel">
        <p>{t.rich('common.notFoundText', { studio: linkTo('/') })}</p>
      </article>
    </Page>
  );
}

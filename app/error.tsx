'use client';

import { toKinoraError } from '../lib/contract';
import { Page } from './shared/app-page';
import { Button } from './shared/button';
import { Problem } from './shared/messages';
import { t } from './texts';

/** Shown in the place of a page that failed. A reload helps: a script that was not fetched is not asked for again. */
export default function ErrorPage({ error }: { error: Error }) {
  return (
    <Page name="common.pageFailed">
      <div className="panel" role="alert">
        <Problem error={toKinoraError(error).toRecord()}>
          <Button onClick={() => window.location.reload()}>{t('common.tryAgain')}</Button>
        </Problem>
      </div>
    </Page>
  );
}

'use client';

import { toKinoraError } from '../lib/contract/errors';
import { Problem } from './shared/messages';
import { SiteHeader } from './shared/site-header';

/** Shown in the place of a page that failed. A reload helps: a script that was not fetched is not asked for again. */
export default function ErrorPage({ error }: { error: Error }) {
  return (
    <>
      <SiteHeader />
      <main id="main" tabIndex={-1} className="terms">
        <h1>This page failed</h1>
        <div className="panel" role="alert">
          <Problem error={toKinoraError(error).toRecord()}>
            <button type="button" onClick={() => window.location.reload()}>
              Try again
            </button>
          </Problem>
        </div>
      </main>
    </>
  );
}

'use client';

import type { ReactNode } from 'react';
import { type TextKey, t } from '../texts';
import { PageTitle } from './page-title';
import { hasServer } from './server';
import { SiteHeader } from './site-header';

type Here = NonNullable<Parameters<typeof SiteHeader>[0]['here']>;

/** A page that works with the API's server only; in a copy of the app without one, it says so. */
export function NeedsServer(props: { here: Here; title: TextKey; children: ReactNode }) {
  const title = <PageTitle name={props.title} />;
  if (hasServer) {
    return (
      <>
        {title}
        {props.children}
      </>
    );
  }
  return (
    <>
      {title}
      <SiteHeader here={props.here} />
      <main id="main" tabIndex={-1} className="terms stack page-width gap-16">
        <h1>{t(props.title)}</h1>
        <p className="panel">
          {t.rich('shared.needsServer', { code: (command) => <code>{command}</code> })}
        </p>
      </main>
    </>
  );
}

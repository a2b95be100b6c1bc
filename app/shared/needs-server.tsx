'use client';

import type { ComponentProps } from 'react';
import { t } from '../texts';
import { Page } from './app-page';
import { hasServer } from './server';

/** A page that works with the API's server only; in a copy of the app without one, it says so. */
export function NeedsServer({ children, ...page }: ComponentProps<typeof Page>) {
  if (hasServer) return children;
  return (
    <Page {...page}>
      <p className="panel">
        {t.rich('shared.needsServer', { code: (command) => <code>{command}</code> })}
      </p>
    </Page>
  );
}

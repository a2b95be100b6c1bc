'use client';

import Link from 'next/link';
import { lazy, Suspense } from 'react';
import { t } from '../texts';

// As in the header, after the page has loaded.
const AppButtons = lazy(async () => ({ default: (await import('./app-buttons')).AppButtons }));

/** The end of every page; on phones with what the header has no room for. */
export function Footer() {
  return (
    <footer className="bottom">
      <Link href="/help" prefetch={false}>
        {t('common.help')}
      </Link>
      <Link href="/terms" prefetch={false}>
        {t('common.termsOfUse')}
      </Link>
      <Suspense>
        <AppButtons />
      </Suspense>
    </footer>
  );
}

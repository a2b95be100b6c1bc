'use client';

import Link from 'next/link';
import { Suspense } from 'react';
import { t } from '../texts';
import { AppButtons } from './site-header';

/** The end of every page; on phones with what the header has no room for. */
export function Footer() {
  return (
    <footer className="bottom row page-width gap-20 wrap muted text-m">
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

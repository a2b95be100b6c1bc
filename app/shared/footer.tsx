'use client';

import Link from 'next/link';
import { t } from '../texts';

/** The end of every page. */
export function Footer() {
  return (
    <footer className="bottom row page-width gap-20 wrap muted text-m">
      <Link href="/help" prefetch={false}>
        {t('common.help')}
      </Link>
      <Link href="/terms" prefetch={false}>
        {t('common.termsOfUse')}
      </Link>
    </footer>
  );
}

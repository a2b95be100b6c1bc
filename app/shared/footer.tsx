'use client';

import { PageLink } from './site-header';

/** The end of every page. */
export function Footer() {
  return (
    <footer className="bottom row page-width gap-20 wrap muted text-m">
      <PageLink href="/help" name="common.help" />
      <PageLink href="/terms" name="common.termsOfUse" />
    </footer>
  );
}

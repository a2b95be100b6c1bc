'use client';

import Link from 'next/link';
import { lazy, type ReactNode, Suspense } from 'react';
import { t } from '../texts';
import { Mark } from './icons';
import { brand } from './page-title';
import { RunningJobs } from './running-jobs';
import { useUnsaved } from './unsaved-videos';

const pages = [
  { href: '/', name: 'common.studio' },
  { href: '/models', name: 'common.models' },
  { href: '/serve', name: 'common.serve' },
  { href: '/keys', name: 'common.keys' },
  { href: '/docs', name: 'common.docs' },
  { href: '/settings', name: 'common.settings' },
] as const;

// The app's own offers come after the page has loaded.
const AppButtons = lazy(async () => ({ default: (await import('./app-buttons')).AppButtons }));
const SaveNotice = lazy(async () => ({ default: (await import('./save-notice')).SaveNotice }));

/**
 * The header of every page, with links to all pages and what runs in this tab. Its first link leads to the
 * page's `<main id="main" tabIndex={-1}>`. No link of the app prefetches: browsers warn in
 * the console about prefetched files that are not used.
 */
export function SiteHeader(props: {
  /** Absent on pages that the header does not link to. */
  here?: (typeof pages)[number]['href'];
  children?: ReactNode;
}) {
  const unsaved = useUnsaved();
  return (
    <>
      <header className="top">
        <a className="skip" href="#main">
          {t('common.skipToContent')}
        </a>
        <p className="brand">
          <Mark /> {brand}
        </p>
        <nav aria-label={t('common.pages')}>
          {pages.map(({ href, name }) => (
            <Link
              key={href}
              href={href}
              prefetch={false}
              aria-current={href === props.here ? 'page' : undefined}
            >
              {t(name)}
            </Link>
          ))}
        </nav>
        <RunningJobs here={props.here} />
        <Suspense>
          <AppButtons />
        </Suspense>
        {props.children}
      </header>
      {unsaved && (
        <Suspense>
          <SaveNotice {...unsaved} />
        </Suspense>
      )}
    </>
  );
}

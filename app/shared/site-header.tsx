'use client';

import type { ReactNode } from 'react';
import { t } from '../texts';
import { Button } from './button';
import { Mark } from './icons';
import { later } from './later';
import { Link } from './link';
import { brand } from './page-title';
import { RunningJobs } from './running-jobs';
import { useUnsaved } from './unsaved-videos';

const pages = [
  { href: '/', name: 'common.studio' },
  { href: '/models', name: 'common.models' },
  { href: '/serve', name: 'common.api' },
  { href: '/settings', name: 'common.settings' },
] as const;
/** The pages of the API, which have one entry in the header. */
const apiPages = [
  { href: '/serve', name: 'common.serve' },
  { href: '/keys', name: 'common.keys' },
  { href: '/docs', name: 'common.docs' },
] as const;
type Page = (typeof pages | typeof apiPages)[number];

// The app's own offers come after the page has loaded.
const AppButtons = later(async () => (await import('./app-buttons')).AppButtons);
const SaveNotice = later(async () => (await import('./save-notice')).SaveNotice);

/**
 * The header of every page, with links to all pages and what runs in this tab. Its first link leads to the
 * page's `<main id="main" tabIndex={-1}>`.
 */
export function SiteHeader(props: {
  /** Absent on pages that the header does not link to. */
  here?: Page['href'] | undefined;
  children?: ReactNode;
}) {
  const { here } = props;
  const unsaved = useUnsaved();
  const ofApi = apiPages.some(({ href }) => href === here);
  return (
    <>
      <header className="top row gap-12">
        <a className="skip" href="#main">
          {t('common.skipToContent')}
        </a>
        <p className="brand row gap-10">
          <Mark /> <span>{brand}</span>
        </p>
        <nav aria-label={t('common.pages')}>
          {pages.map(({ href, name }) => (
            <PageLink
              key={href}
              href={href}
              name={name}
              current={name === 'common.api' ? ofApi : href === here && 'page'}
            />
          ))}
        </nav>
        <RunningJobs here={here} />
        <AppButtons />
        {props.children}
        <Button className="top-more" aria-label={t('common.more')} popoverTarget="top-more">
          ⋯
        </Button>
        <div id="top-more" popover="auto" className="menu">
          <PageLink
            href="/settings"
            name="common.settings"
            current={here === '/settings' && 'page'}
          />
          <PageLink href="/help" name="common.help" />
          <AppButtons />
        </div>
      </header>
      {ofApi && (
        <nav className="subpages flex page-width gap-4" aria-label={t('common.api')}>
          {apiPages.map(({ href, name }) => (
            <PageLink key={href} href={href} name={name} current={href === here && 'page'} />
          ))}
        </nav>
      )}
      {unsaved && <SaveNotice {...unsaved} />}
    </>
  );
}

export function PageLink(props: {
  href: string;
  name: Page['name'] | 'common.help' | 'common.termsOfUse';
  current?: boolean | 'page';
}) {
  const { href, name, current } = props;
  return (
    <Link href={href} aria-current={current || undefined}>
      {t(name)}
    </Link>
  );
}

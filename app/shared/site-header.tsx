import Link from 'next/link';
import type { ReactNode } from 'react';
import { AppButtons } from './app-buttons';
import { Mark } from './icons';
import { RunningJobs } from './running-jobs';

const pages = [
  { href: '/', name: 'Studio' },
  { href: '/models', name: 'Models' },
  { href: '/serve', name: 'Serve' },
  { href: '/keys', name: 'Keys' },
  { href: '/docs', name: 'Docs' },
] as const;

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
  return (
    <header className="top">
      <a className="skip" href="#main">
        Skip to content
      </a>
      <p className="brand">
        <Mark /> Kinora
      </p>
      <nav aria-label="Pages">
        {pages.map(({ href, name }) => (
          <Link
            key={href}
            href={href}
            prefetch={false}
            aria-current={href === props.here ? 'page' : undefined}
          >
            {name}
          </Link>
        ))}
      </nav>
      <RunningJobs here={props.here} />
      <AppButtons />
      {props.children}
    </header>
  );
}

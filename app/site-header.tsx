import Link from 'next/link';
import type { ReactNode } from 'react';
import { Mark } from './studio/icons';

const places = [
  { href: '/', name: 'Studio' },
  { href: '/models', name: 'Models' },
  { href: '/serve', name: 'Serve' },
  { href: '/keys', name: 'Keys' },
  { href: '/docs', name: 'Docs' },
] as const;

/**
 * The top of every page: where one is, and the way to the others. Links here and elsewhere fetch
 * nothing beforehand: the browser complains of what is fetched and not used.
 */
export function SiteHeader(props: { here: (typeof places)[number]['href']; children?: ReactNode }) {
  return (
    <header className="top">
      <p className="brand">
        <Mark /> Kinora
      </p>
      <nav aria-label="Pages">
        {places.map(({ href, name }) => (
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
      {props.children}
    </header>
  );
}

import type { Metadata } from 'next';
import Link from 'next/link';
import { SiteHeader } from './shared/site-header';

export const metadata: Metadata = { title: 'Page not found · Kinora' };

export default function NotFound() {
  return (
    <>
      <SiteHeader />
      <main id="main" tabIndex={-1} className="terms">
        <h1>Page not found</h1>
        <article className="panel">
          <p>
            There is no page at this address. Your videos are in the{' '}
            <Link href="/" prefetch={false}>
              studio
            </Link>
            .
          </p>
        </article>
      </main>
    </>
  );
}

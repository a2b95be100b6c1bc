import type { Metadata } from 'next';
import { SiteHeader } from '../shared/site-header';

export const metadata: Metadata = { title: 'No connection · Kinora', robots: { index: false } };

/** Shown by the service worker for a page that it does not have and that cannot be reached. */
export default function Page() {
  return (
    <>
      <SiteHeader />
      <main id="main" tabIndex={-1} className="terms">
        <h1>No connection</h1>
        <article className="panel">
          <p>
            This page is not stored in this browser, and its server does not respond. The studio,
            your models and your videos work without it.
          </p>
        </article>
      </main>
    </>
  );
}

import type { Metadata } from 'next';
import Link from 'next/link';
import { Errors } from './errors';
import { Limits } from './limits';
import { QuickStart } from './quick-start';
import { WayOfAJob } from './way-of-a-job';
import { Webhooks } from './webhooks';

export const metadata: Metadata = { title: 'Docs · Kinora' };
/** Everything is known when the app is built. */
export const dynamic = 'force-static';

const contents = [
  { href: '#quick-start', title: 'Quick start' },
  { href: '#clients', title: 'Clients by base URL' },
  { href: '#errors', title: 'Errors' },
  { href: '#prediction-codes', title: 'Codes of a failed prediction' },
  { href: '#webhooks', title: 'Webhooks' },
  { href: '#signatures', title: 'Signatures' },
  { href: '#way-of-a-job', title: 'How a job reaches a GPU' },
  { href: '#who-can-see', title: 'Who can see it' },
  { href: '#limits', title: 'Limits' },
];

export default function Page() {
  return (
    <main className="docs">
      <header className="docs-head">
        <h1>The v3 API</h1>
        <p>
          One still image and a prompt become a 720p video. You call this server; a browser tab that
          is connected to it computes the video on its GPU. Clients of the v3 API run against it as
          they are: only their base URL changes.
        </p>
        <p>
          <Link className="button primary" href="/docs/api" prefetch={false}>
            Every endpoint
          </Link>
        </p>
      </header>
      <nav className="contents" aria-label="Contents">
        <ol>
          {contents.map(({ href, title }) => (
            <li key={href}>
              <a href={href}>{title}</a>
            </li>
          ))}
        </ol>
      </nav>
      <article className="docs-text">
        <QuickStart />
        <Errors />
        <Webhooks />
        <WayOfAJob />
        <Limits />
      </article>
    </main>
  );
}

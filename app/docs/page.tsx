import type { Metadata } from 'next';
import { Link } from '../shared/link';
import { Errors } from './errors';
import { JobLifecycle } from './job-lifecycle';
import { Limits } from './limits';
import { QuickStart } from './quick-start';
import { Switches } from './switches';
import { Webhooks } from './webhooks';

export const metadata: Metadata = { title: 'Docs · Kinora' };
/** The page is rendered when the app is built. */
export const dynamic = 'force-static';

const contents = [
  { href: '#quick-start', title: 'Quick start' },
  { href: '#clients', title: 'Clients by base URL' },
  { href: '#safety-checker', title: 'Safety checker' },
  { href: '#prompt-optimizer', title: 'Prompt optimiser' },
  { href: '#errors', title: 'Errors' },
  { href: '#prediction-codes', title: 'Codes of a failed prediction' },
  { href: '#webhooks', title: 'Webhooks' },
  { href: '#signatures', title: 'Signatures' },
  { href: '#job-lifecycle', title: 'How a job reaches a GPU' },
  { href: '#who-can-see', title: 'Who can see it' },
  { href: '#limits', title: 'Limits' },
];

export default function Page() {
  return (
    <main id="main" tabIndex={-1} className="docs stack page-width gap-0" lang="en">
      <header className="docs-head stack gap-14 prose">
        <h1>The v3 API</h1>
        <p>
          One still image and a prompt become a 720p video. You call this server; a browser tab that
          is connected to it computes the video on its GPU. Clients of the v3 API work unmodified:
          only their base URL changes.
        </p>
        <p>
          <Link className="button primary" href="/docs/api">
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
      <article className="docs-text min-0">
        <QuickStart />
        <Switches />
        <Errors />
        <Webhooks />
        <JobLifecycle />
        <Limits />
      </article>
    </main>
  );
}

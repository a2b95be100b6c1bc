import type { Metadata } from 'next';
import Link from 'next/link';
import { appPath } from '../../../lib/contract/site';
import { hasServer } from '../../shared/server';
import { Reference } from './reference';

export const metadata: Metadata = { title: 'Endpoints · Kinora' };
export const dynamic = 'force-static';

export default function Page() {
  return (
    <div className="reference-page">
      <nav className="reference-links" aria-label="Documentation">
        <Link href="/docs" prefetch={false}>
          Quick start, errors, webhooks
        </Link>
        <a href={appPath('/openapi.json')}>openapi.json</a>
      </nav>
      {!hasServer && (
        <p className="panel">
          This copy of the app has no server: requests can be read here, and sent where Kinora runs
          with <code>npm start</code>.
        </p>
      )}
      <Reference />
    </div>
  );
}

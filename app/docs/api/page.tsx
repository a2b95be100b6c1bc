import type { Metadata } from 'next';
import Link from 'next/link';
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
        <a href="/openapi.json">openapi.json</a>
      </nav>
      <Reference />
    </div>
  );
}

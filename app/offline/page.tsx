import type { Metadata } from 'next';
import { OfflinePage } from './offline-page';

export const metadata: Metadata = { title: 'No connection · Kinora', robots: { index: false } };

/** Shown by the service worker for a page that it does not have and that cannot be reached. */
export default function Page() {
  return <OfflinePage />;
}

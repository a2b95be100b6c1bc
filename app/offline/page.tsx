import type { Metadata } from 'next';
import { OfflinePage } from './offline-page';

export const metadata: Metadata = { robots: { index: false } };

/** Shown by the service worker for a page that it does not have and that cannot be reached. */
export default OfflinePage;

import type { Metadata } from 'next';
import { NotFoundPage } from './shared/not-found-page';

export const metadata: Metadata = { title: 'Page not found · Kinora' };

export default function NotFound() {
  return <NotFoundPage />;
}

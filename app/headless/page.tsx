import type { Metadata } from 'next';
import { HeadlessPage } from './headless';

export const metadata: Metadata = { title: 'Kinora, headless', robots: { index: false } };

export default function Page() {
  return <HeadlessPage />;
}

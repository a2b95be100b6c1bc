import type { Metadata } from 'next';
import { TermsPage } from './terms-page';

export const metadata: Metadata = { title: 'Terms of use · Kinora' };

export default function Page() {
  return <TermsPage />;
}

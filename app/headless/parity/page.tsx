import type { Metadata } from 'next';
import { ParityPage } from './parity';

export const metadata: Metadata = { title: 'Kinora, parity' };

export default function Page() {
  return <ParityPage />;
}

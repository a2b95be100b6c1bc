import type { Metadata } from 'next';
import { BenchPage } from './bench';

export const metadata: Metadata = { title: 'Kinora, benchmark' };

export default function Page() {
  return <BenchPage />;
}

import type { Metadata } from 'next';
import './serve.css';
import { ServePage } from './serve-page';

export const metadata: Metadata = { title: 'Serve · Kinora' };

export default function Page() {
  return <ServePage />;
}

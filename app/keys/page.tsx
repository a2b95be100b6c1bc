import type { Metadata } from 'next';
import './keys.css';
import { KeysPage } from './keys-page';

export const metadata: Metadata = { title: 'Keys · Kinora' };

export default function Page() {
  return <KeysPage />;
}

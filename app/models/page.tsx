import type { Metadata } from 'next';
import './models.css';
import { ModelsPage } from './models-page';

export const metadata: Metadata = { title: 'Models · Kinora' };

export default function Page() {
  return <ModelsPage />;
}

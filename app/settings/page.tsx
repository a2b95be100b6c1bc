import type { Metadata } from 'next';
import '../models/models.css';
import './settings.css';
import { SettingsPage } from './settings-page';

export const metadata: Metadata = { title: 'Settings · Kinora' };

export default function Page() {
  return <SettingsPage />;
}

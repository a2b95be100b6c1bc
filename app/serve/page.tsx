import type { Metadata } from 'next';
import { NeedsServer } from '../shared/needs-server';
import './serve.css';
import { ServePage } from './serve-page';

export const metadata: Metadata = { title: 'Serve · Kinora' };

export default function Page() {
  return (
    <NeedsServer here="/serve" title="common.serve">
      <ServePage />
    </NeedsServer>
  );
}

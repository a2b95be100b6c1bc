import type { ReactNode } from 'react';
import { SiteHeader } from '../shared/site-header';
import { EnglishOnly } from './english-only';

export default function Layout({ children }: { children: ReactNode }) {
  return (
    <>
      <SiteHeader here="/docs" />
      <EnglishOnly />
      {children}
    </>
  );
}

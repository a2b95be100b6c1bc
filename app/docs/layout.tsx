import type { ReactNode } from 'react';
import './docs.css';
import { SiteHeader } from '../shared/site-header';

export default function Layout({ children }: { children: ReactNode }) {
  return (
    <>
      <SiteHeader here="/docs" />
      {children}
    </>
  );
}

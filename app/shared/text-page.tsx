'use client';

import type { ReactNode } from 'react';
import { SiteHeader } from './site-header';

/** A page that is one text. */
export function TextPage({ title, children }: { title: string; children: ReactNode }) {
  return (
    <>
      <SiteHeader />
      <main id="main" tabIndex={-1} className="terms stack page-width gap-16">
        <h1>{title}</h1>
        {children}
      </main>
    </>
  );
}

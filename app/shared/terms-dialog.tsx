'use client';

import { lazy, Suspense } from 'react';
import { useTerms } from './terms-store';

const TermsQuestion = lazy(async () => ({
  default: (await import('./terms-question')).TermsQuestion,
}));

/** Asks for the terms of use while something waits for them. Every page has one. */
export function TermsDialog() {
  if (!useTerms().asking) return null;
  return (
    <Suspense>
      <TermsQuestion />
    </Suspense>
  );
}

'use client';

import { later } from './later';
import { useTerms } from './terms-store';

const TermsQuestion = later(async () => (await import('./terms-question')).TermsQuestion);

/** Asks for the terms of use while something waits for them. Every page has one. */
export function TermsDialog() {
  if (!useTerms().asking) return null;
  return <TermsQuestion />;
}

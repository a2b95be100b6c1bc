'use client';

import { Fragment, type ReactNode, useEffect } from 'react';
import { showChosenLanguage, useLanguage } from './language-store';

/**
 * Everything on a page. Pages come from the server in English; where another language is wanted, all of the
 * page is rendered anew when its texts are loaded.
 */
export function LanguageRoot({ children }: { children: ReactNode }) {
  const language = useLanguage();
  useEffect(() => {
    // Without the texts, which the server could not send, the page stays English.
    showChosenLanguage().catch(() => {});
  }, []);
  return <Fragment key={language}>{children}</Fragment>;
}

'use client';

import { t } from '../texts';
import { useLanguage } from '../texts/language-store';

/** Says in another language than English that what follows is in English. */
export function EnglishOnly() {
  if (useLanguage() === 'en') return null;
  return <aside className="page-width mt-8 muted">{t('shared.docsAreEnglish')}</aside>;
}

import { de } from './de';
import { en } from './en';
import { es } from './es';
import { fr } from './fr';
import { it } from './it';
import { pt } from './pt';
import type { Language, LanguageWords } from './types';
import { zh } from './zh';

export { type Language, languages } from './types';

export const languageWords: Readonly<Record<Language, LanguageWords>> = {
  en,
  zh,
  de,
  fr,
  es,
  it,
  pt,
};

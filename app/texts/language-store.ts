import { useSyncExternalStore } from 'react';
import { Observable } from '../../lib/contract';
import { readText, writeText } from '../shared/stored-text';
import { language, setTexts } from '.';
import { type Language, languages, matchLanguage, type Texts } from './catalogue';

/** What a person has chosen; `system` follows the browser. */
export type LanguageChoice = Language | 'system';

const key = 'kinora-language';
/** Whose texts are loaded. */
const shown = new Observable<Language>('en');

/** Texts of the languages that are loaded when they are asked for. */
const loaders: Readonly<Record<Exclude<Language, 'en'>, () => Promise<Texts>>> = {
  zh: async () => (await import('./zh')).zh,
};

/** The choice of this browser. */
export function languageChoice(): LanguageChoice {
  const stored = readText(key);
  return languages.find((one) => one === stored) ?? 'system';
}

/** Keeps a choice, and shows the pages of this tab in it. Without storage it holds until a reload. */
export async function chooseLanguage(choice: LanguageChoice): Promise<void> {
  writeText(key, choice === 'system' ? null : choice);
  await show(choice === 'system' ? matchLanguage(navigator.languages) : choice);
}

/** Shows the pages of this tab in the chosen language. */
export async function showChosenLanguage(): Promise<void> {
  const choice = languageChoice();
  await show(choice === 'system' ? matchLanguage(navigator.languages) : choice);
}

/** The language that the pages of this tab are shown in; English until the texts of another are loaded. */
export function useLanguage(): Language {
  return useSyncExternalStore(shown.subscribe, language, shown.getServerSnapshot);
}

/** What was asked for last: the texts of another one may still be on their way. */
let wanted: Language = 'en';

async function show(next: Language): Promise<void> {
  wanted = next;
  if (next === language()) return;
  const texts = next === 'en' ? undefined : await loaders[next]();
  if (next !== wanted) return;
  setTexts(next, texts);
  document.documentElement.lang = next;
  shown.set(next);
}

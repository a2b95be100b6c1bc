import { createTranslator } from 'use-intl/core';
import { type ErrorRecord, generalTexts } from '../../lib/contract';
import type { Language, Texts } from './catalogue';
import { english } from './english';

const translatorOf = (language: Language, { messages }: Texts) =>
  createTranslator<Texts['messages']>({
    locale: language,
    messages,
    onError(error) {
      throw error;
    },
  });

type Translator = ReturnType<typeof translatorOf>;
/** Key of a text, such as `common.update`. */
export type TextKey = Parameters<Translator>[0];

/** English; the errors, terms and manifests are in English already. */
const originals: Texts = { messages: english, errors: null, terms: null, manifests: null };

let current: { language: Language; texts: Texts; translator: Translator } = {
  language: 'en',
  texts: originals,
  translator: translatorOf('en', originals),
};

/**
 * A text of the catalogue in the language of the page, such as `t('common.jobLeft', { time })`; `t.rich` for
 * texts with tags, each of which is a function from its content to an element.
 *
 * Call it while rendering and in event handlers, not when a module is loaded: the language changes later.
 * Components of the server are always English, so what has texts is a client component.
 */
export const t: Pick<Translator, 'rich'> & Translator = Object.assign(
  ((...call: Parameters<Translator>) => current.translator(...call)) as Translator,
  {
    rich: ((...call: Parameters<Translator['rich']>) =>
      current.translator.rich(...call)) as Translator['rich'],
  },
);

/** An error in the language of the page. */
export interface ErrorTexts {
  readonly message: string;
  readonly remedy: string;
  /** What exactly is wrong, in English, where the message is a translation of the general sentence. */
  readonly detail: string | null;
}

/** The texts of an error in the language of the page; one that the page itself has given texts keeps them. */
export function errorTexts(error: ErrorRecord & Partial<ErrorTexts>): ErrorTexts {
  const { code, message, remedy } = error;
  if (error.detail !== undefined) return { message, remedy, detail: error.detail };
  const translated = current.texts.errors?.[code];
  if (!translated) return { message, remedy, detail: null };
  const detail = message === generalTexts(code).message ? null : message;
  return { message: translated[0], remedy: translated[1], detail };
}

/** What is wrong and what to do, as one line in the language of the page. */
export function errorSentences(error: ErrorRecord): string {
  const { message, remedy } = errorTexts(error);
  return `${message} ${remedy}`;
}

/** The terms of use in the language of the page; null where they are in English. */
export function translatedTerms(): Texts['terms'] {
  return current.texts.terms;
}

/** A text of a model's manifest in the language of the page; as it is where it is of nobody here. */
export function manifestText(text: string): string {
  return current.texts.manifests?.[text] ?? text;
}

/** The language of {@link t}, for `Intl`. */
export function language(): Language {
  return current.language;
}

/**
 * Sets what {@link t} reads. The page has to be rendered anew then; `LanguageRoot` does both.
 *
 * @param texts of this language; not needed for English
 */
export function setTexts(language: Language, texts = originals): void {
  current = { language, texts, translator: translatorOf(language, texts) };
}

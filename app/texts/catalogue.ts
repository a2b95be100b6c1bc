import type { ErrorCode, TermsSection } from '../../lib/contract';
import type { messages } from './en';

/** The same texts in any words. */
type Words<T> = T extends string ? string : { readonly [Key in keyof T]: Words<T[Key]> };

/** The texts of one language. */
export interface Texts {
  readonly messages: Words<typeof messages>;
  /** Null where the texts of the errors are in this language already. */
  readonly errors: Readonly<Record<ErrorCode, readonly [message: string, remedy: string]>> | null;
  /** Null where they are `lib/contract/terms-text.ts` itself. */
  readonly terms: readonly TermsSection[] | null;
  /** Texts of the manifests that Kinora ships, by their English text; null in English. */
  readonly manifests: Readonly<Record<string, string>> | null;
}

/** The languages of the pages. */
export const languages = ['en', 'zh'] as const;
export type Language = (typeof languages)[number];

/** Each language's name in itself. */
export const languageNames: Readonly<Record<Language, string>> = { en: 'English', zh: '中文' };

/** The first of these languages that there is; English where there is none. @param tags BCP 47 tags */
export function matchLanguage(tags: readonly string[]): Language {
  for (const tag of tags) {
    const match = languages.find((language) => tag.toLowerCase().split('-')[0] === language);
    if (match) return match;
  }
  return 'en';
}

/** The languages whose prompts are rewritten. */
export const languages = ['en', 'zh', 'de', 'fr', 'es', 'it', 'pt'] as const;
export type Language = (typeof languages)[number];

/**
 * Words of one language. Lists of words are one string each, separated by spaces. Patterns are sources of
 * regular expressions over text in lower case with hyphens as spaces; they match whole words, in Chinese any
 * place. `~` stands for up to three words between.
 */
export interface LanguageWords {
  /** Name in English, for the instruction. */
  name: string;
  /** Words without content; in Chinese, characters. */
  stopWords: string;
  /** Pattern of the words that negate a clause. */
  negations: string;
  /** Words for the numbers from two on: index 0 is "two". "One" is an article or pronoun in most languages. */
  numbers: string;
  /** Pairs of opposite directions, each side a pattern. */
  directions: readonly (readonly [string, string])[];
  camera: string;
  /** Patterns of camera moves by name; `static` is a camera that does not move. */
  moves: { readonly static: string; readonly [name: string]: string };
  /** Words of motion, camera and light that a salvaged sentence may add. */
  motion: string;
  persons: string;
  /** Parts of the body and states of dress that a rewrite must not bring in. */
  intimate: string;
}

import languageWords from './words.json';

/** The languages whose prompts are rewritten. */
export const languages = ['en', 'zh', 'de', 'fr', 'es', 'it', 'pt'] as const;
export type Language = (typeof languages)[number];

/**
 * Words of one language. Lists of words are one string each, separated by spaces. Patterns are sources of
 * regular expressions over text in lower case with hyphens as spaces; they match whole words, in Chinese any
 * place. `~` stands for up to three words between.
 */
interface LanguageWords {
  /** Name in English, for the instruction. */
  name: string;
  /** Words without content; in Chinese, characters. */
  stopWords: string;
  /** Pattern of the words that negate a clause. */
  negations: string;
  /** Words for the numbers from two on: index 0 is "two". "One" is an article or pronoun in most languages. */
  numbers: string;
  /** Pairs of opposite directions, each side a pattern. */
  directions: readonly (readonly string[])[];
  camera: string;
  /** Patterns of camera moves by name; `static` is a camera that does not move. */
  moves: Readonly<Record<string, string>>;
  /** Words of motion, camera and light that a salvaged sentence may add. */
  motion: string;
  persons: string;
  /** Parts of the body and states of dress that a rewrite must not bring in. */
  intimate: string;
}

/** The word lists of a language, compiled for comparison with {@link folded} text. */
export interface Lexicon {
  readonly language: Language;
  readonly name: string;
  readonly stopWords: ReadonlySet<string>;
  readonly motion: ReadonlySet<string>;
  readonly negation: RegExp;
  /** Value and pattern of each number word. */
  readonly numbers: readonly (readonly [value: string, pattern: RegExp])[];
  readonly directions: readonly (readonly [RegExp, RegExp])[];
  readonly camera: RegExp;
  readonly moves: readonly (readonly [name: string, pattern: RegExp])[];
  readonly persons: RegExp;
  readonly intimate: RegExp;
  /** Every word of the lists, as evidence for the language. */
  readonly known: ReadonlySet<string>;
}

const split = (list: string) => list.split(' ');

/** Lower case, plain apostrophes, no hyphens. Keeps the length of the text where case does. */
export function folded(text: string): string {
  return text
    .toLowerCase()
    .replace(/[’ʼ]/g, "'")
    .replace(/[-‐‑–—]/g, ' ');
}

function compile(language: Language): Lexicon {
  const words: LanguageWords = languageWords[language];
  const chinese = language === 'zh';
  const pattern = (source: string) =>
    chinese
      ? new RegExp(source, 'gu')
      : new RegExp(
          `(?<![\\p{L}\\p{N}])(?:${source.replaceAll('~', "(?: [\\p{L}\\p{N}']+){0,3}")})(?![\\p{L}\\p{N}])`,
          'gu',
        );
  const anyOf = (list: string) => pattern(split(list).join('|'));
  const numbers = split(words.numbers);
  return {
    language,
    name: words.name,
    stopWords: new Set(split(words.stopWords)),
    motion: new Set(split(words.motion)),
    negation: pattern(words.negations),
    numbers: numbers.map((source, i) => [String(i + 2), pattern(source)] as const),
    directions: words.directions.map(([a = '', b = '']) => [pattern(a), pattern(b)] as const),
    camera: pattern(words.camera),
    moves: Object.entries(words.moves).map(([name, source]) => [name, pattern(source)] as const),
    persons: anyOf(words.persons),
    intimate: anyOf(words.intimate),
    known: new Set(
      [words.stopWords, words.motion, words.persons, words.numbers, words.negations, words.camera]
        .concat(words.directions.flat())
        .flatMap((list) => list.split(/[ |]/)),
    ),
  };
}

/** The languages by their names. */
export const lexicons = Object.fromEntries(
  languages.map((language) => [language, compile(language)]),
) as Readonly<Record<Language, Lexicon>>;

/**
 * The language of a text by its script and the words of our lists; null where it is none of the seven or
 * where two languages have the same evidence.
 */
export function detectLanguage(text: string): Language | null {
  const count = (script: RegExp) => text.match(script)?.length ?? 0;
  const letters = count(/\p{L}/gu);
  const han = count(/\p{Script=Han}/gu);
  const latin = count(/\p{Script=Latin}/gu);
  if (letters === 0 || (letters - han - latin) / letters > 0.02) return null;
  if (han > 0) return han >= latin / 2 ? 'zh' : null;
  const words = folded(text).match(/[\p{L}\p{N}]+/gu) ?? [];
  const scores = languages
    .filter((language) => language !== 'zh')
    .map((language) => {
      const { stopWords, known } = lexicons[language];
      const score = words.reduce(
        (sum, w) => sum + (stopWords.has(w) ? 2 : known.has(w) ? 1 : 0),
        0,
      );
      return { language, score };
    })
    .sort((a, b) => b.score - a.score);
  const [first, second] = scores;
  if (!first || !second || first.score < 2 || first.score === second.score) return null;
  return first.language;
}

const inflections =
  /^(s|es|e|d|ed|er|ers|ing|ly|n|en|em|es|er|t|te|end|a|o|as|os|i|ando|endo|ant|ent|ent|an|am|ndo|'s)$/;

/**
 * Whether two words of an alphabet are forms of the same word: equal, the same first four letters, or, for
 * words of up to four letters, equal but for a usual ending ("run", "runs", "running").
 */
export function isSameWord(a: string, b: string): boolean {
  if (a === b) return true;
  const [short, long] = a.length <= b.length ? [a, b] : [b, a];
  if (short.length >= 5) return long.startsWith(short.slice(0, 4));
  const stem = short.length > 3 ? short.replace(/(?:s|e|o|a)$/, '') : short;
  if (stem.length < 3 || !long.startsWith(stem)) return false;
  const rest = long.slice(stem.length);
  return inflections.test(rest) || (rest[0] === stem.at(-1) && inflections.test(rest.slice(1)));
}

/** Words, in Chinese single characters, that carry content: no stop words, no numerals. */
export function contentWords(text: string, lexicon: Lexicon): string[] {
  const words =
    folded(text).match(/\p{Script=Han}|(?:(?!\p{Script=Han})[\p{L}\p{N}\p{M}])+/gu) ?? [];
  return words.filter(
    (word) =>
      !lexicon.stopWords.has(word) &&
      !/^\p{N}+$/u.test(word) &&
      (word.length > 1 || /\p{Script=Han}/u.test(word)),
  );
}

/** Whether one of the words is a form of this word. */
export function hasWord(words: readonly string[], word: string): boolean {
  return words.some((other) => isSameWord(other, word));
}

/** Length of a text in words, in Chinese in characters. */
export function lengthOf(text: string, lexicon: Lexicon): number {
  const unit =
    lexicon.language === 'zh' ? /\p{Script=Han}/gu : /[\p{L}\p{N}][\p{L}\p{N}\p{M}'’-]*/gu;
  return text.match(unit)?.length ?? 0;
}

/** How often a piece of text occurs, as it is. */
export function occurrences(text: string, piece: string): number {
  return piece === '' ? 0 : text.split(piece).length - 1;
}

/** A piece of text that is no part of a longer word of an alphabet. */
export function wholeWord(word: string, flags: string): RegExp {
  const before = /^[\p{Script=Latin}\p{N}]/u.test(word) ? '(?<![\\p{Script=Latin}\\p{N}])' : '';
  const after = /[\p{Script=Latin}\p{N}]$/u.test(word) ? '(?![\\p{Script=Latin}\\p{N}])' : '';
  return new RegExp(before + word.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&') + after, flags);
}

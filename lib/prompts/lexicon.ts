import languageWords from './words.json';

/** The languages of prompts that are continued. */
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
  /** Words without content. */
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
  /** Words of motion, camera and light, as evidence for the language. */
  motion: string;
  persons: string;
  /** Parts of the body and states of dress that a sentence must not bring in. */
  intimate: string;
}

/** The word lists of a language, compiled for comparison with {@link folded} text. */
export interface Lexicon {
  readonly language: Language;
  readonly name: string;
  readonly stopWords: ReadonlySet<string>;
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

const compiled = new Map<Language, Lexicon>();

/** The word lists of a language, compiled when they are first asked for: all of them take 0.1 s. */
export function lexiconOf(language: Language): Lexicon {
  const lexicon = compiled.get(language) ?? compile(language);
  compiled.set(language, lexicon);
  return lexicon;
}

/**
 * The languages of which a text has the most evidence, by its script and the words of our lists: several where
 * they have the same, none where the evidence is weak.
 *
 * @param leastShare of the words of an alphabet that must be evidence
 */
export function languagesOf(text: string, leastShare = 0): readonly Language[] {
  const count = (script: RegExp) => text.match(script)?.length ?? 0;
  const letters = count(/\p{L}/gu);
  const han = count(/\p{Script=Han}/gu);
  const latin = count(/\p{Script=Latin}/gu);
  if (letters === 0 || (letters - han - latin) / letters > 0.02) return [];
  if (han > 0) return han >= latin / 2 ? ['zh'] : [];
  const words = folded(text).match(/[\p{L}\p{N}]+/gu) ?? [];
  const score = (language: Language) => {
    const { stopWords, known } = lexiconOf(language);
    return words.reduce((sum, w) => sum + (stopWords.has(w) ? 2 : known.has(w) ? 1 : 0), 0);
  };
  const scores = languages.map((language) => (language === 'zh' ? 0 : score(language)));
  const most = Math.max(...scores);
  if (most < Math.max(2, 2 * leastShare * words.length)) return [];
  return languages.filter((_, i) => scores[i] === most);
}

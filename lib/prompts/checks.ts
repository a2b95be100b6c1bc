import { hasSexualTerm, namesChild } from '../contract';
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
interface Lexicon {
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
function lexiconOf(language: Language): Lexicon {
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
function languagesOf(text: string, leastShare = 0): readonly Language[] {
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

/** A prompt as the sentences after it are checked against it. */
export interface Prompt {
  readonly original: string;
  readonly lexicon: Lexicon;
  /** What it shows, as {@link folded} text. */
  readonly shown: string;
  /** What it rules out, from each negation on. */
  readonly ruledOut: string;
}

/** Brackets, quotations and addresses, whose language may be another one. */
const foreign =
  /\[[^\]]*\]|\{[^}]*\}|<[^>]*>|"[^"]*"|“[^”]*”|„[^“”]*[“”]|«[^»]*»|「[^」]*」|『[^』]*』|《[^》]*》|(?:https?:\/\/|www\.)\S+/gu;

/** Most words of a clause (Chinese: characters) that goes on with the list of a negation before it. */
const longestInList = 4;

/** Reads a prompt; null where its language is none that can be checked. */
export function readPrompt(original: string): Prompt | null {
  const [language, ...others] = languagesOf(original.replace(foreign, ' '));
  if (language === undefined || others.length > 0) return null;
  const lexicon = lexiconOf(language);
  let [shown, ruledOut, isList] = ['', '', false];
  for (const clause of folded(original).split(/(?<=[,;:.!?…\n，、；：。！？])/u)) {
    const at = clause.search(lexicon.negation);
    const length = clause.match(/\p{Script=Han}|[\p{L}\p{N}']+/gu)?.length ?? 0;
    // "no text, logo or watermark" is one list.
    const start = at >= 0 ? at : isList && length <= longestInList ? 0 : clause.length;
    shown += clause.slice(0, start);
    ruledOut += clause.slice(start);
    isList = start < clause.length && !/[.!?…\n。！？]\s*$/u.test(clause);
  }
  return { original, lexicon, shown, ruledOut };
}

/** The fault in a word or two; null where there is none. */
type Check = (sentence: string, prompt: Prompt) => string | null;

const matches = (text: string, pattern: RegExp) => folded(text).match(pattern) ?? [];

/** What the sentences consist of besides their ends, as a class for a regular expression and for GBNF. */
export const charactersOf = ({ language }: Lexicon): string =>
  language === 'zh' ? '[一-鿿，、；：0-9A-Za-z ]' : "[a-zA-Z0-9 ,;'À-ɏ%°-]";

/** How a model begins that speaks to its user, in English. */
const address = /^(?:here|sure|certainly|okay|i|we|you|as an ai)\b/iu;

/** A finished sentence without brackets, quotation marks and lists, about the picture. */
const form: Check = (sentence, { lexicon }) =>
  new RegExp(`^(?=[\\p{L}\\p{N}])${charactersOf(lexicon)}+[.!?。！？]$`, 'u').test(sentence) &&
  !(lexicon.language === 'en' && address.test(sentence))
    ? null
    : sentence.slice(0, 40);

/** Share of stop words that each sentence of prose has; a list of keywords has fewer, random letters a few. */
const proseShare = 0.2;

const language: Check = (sentence, { lexicon }) => {
  const found = languagesOf(sentence, proseShare);
  return found.includes(lexicon.language) ? null : found.join(' or ') || 'unknown';
};

/** No person, intimate part of the body, sexual term or child that the prompt does not show. */
const people: Check = (sentence, { original, shown, lexicon }) => {
  for (const pattern of [lexicon.persons, lexicon.intimate]) {
    const known = new Set(matches(shown, pattern));
    const added = matches(sentence, pattern).find((word) => !known.has(word));
    if (added !== undefined) return added;
  }
  if (namesChild(sentence) && !namesChild(original)) return 'a child';
  return hasSexualTerm(sentence) && !hasSexualTerm(original) ? 'a sexual term' : null;
};

/** The camera moves of the prompt and no other; without one, only a still camera. */
const camera: Check = (sentence, { shown, lexicon }) => {
  const movesOf = (text: string) =>
    lexicon.moves.filter(([, pattern]) => matches(text, pattern).length > 0).map(([name]) => name);
  const [known, there] = [movesOf(shown), movesOf(sentence)];
  const added = there.find(
    (name) => !known.includes(name) && (name !== 'static' || known.length > 0),
  );
  if (added !== undefined) return added;
  const speaksOfCamera = [sentence, shown].map((text) => matches(text, lexicon.camera).length > 0);
  return speaksOfCamera[0] && !speaksOfCamera[1] && there.length === 0 ? 'unknown' : null;
};

function numbersIn(text: string, { numbers }: Lexicon): string[] {
  const words = numbers.filter(([, pattern]) => matches(text, pattern).length > 0);
  return [...(text.match(/\p{N}+(?:[.,]\p{N}+)*/gu) ?? []), ...words.map(([value]) => value)];
}

/** Words that carry content, of Chinese each pair of characters. */
function wordsOf(text: string, { stopWords, negation }: Lexicon): string[] {
  const found = folded(text).matchAll(/(?=(\p{Script=Han}{2}))|(?!\p{Script=Han})[\p{L}\p{N}']+/gu);
  const words = [...found].map(([word, pair = word]) => pair);
  return words.filter((word) => word !== '' && !stopWords.has(word) && word.search(negation) < 0);
}

/** No other number, no opposite direction, nothing that the prompt rules out, and none of its words negated. */
const contradiction: Check = (sentence, { original, lexicon, shown, ruledOut }) => {
  const numbers = numbersIn(original, lexicon);
  const number = numbersIn(sentence, lexicon).find((value) => !numbers.includes(value));
  if (number !== undefined) return number;
  const opposites = lexicon.directions.flatMap(([a, b]) => [[a, b] as const, [b, a] as const]);
  for (const [side, other] of opposites) {
    const [turned] = matches(sentence, side);
    if (turned && !matches(shown, side).length && matches(shown, other).length) return turned;
  }
  const words = wordsOf(sentence, lexicon);
  const shownWords = new Set(wordsOf(shown, lexicon));
  const banned = wordsOf(ruledOut, lexicon).filter((word) => !shownWords.has(word));
  const named = words.find((word) => banned.includes(word));
  if (named !== undefined) return named;
  const negates = matches(sentence, lexicon.negation).length > 0;
  return (negates && words.find((word) => shownWords.has(word))) || null;
};

/** Why a sentence is left out, by the check that finds it. */
export const checks: Readonly<Record<string, Check>> = {
  form,
  'another language': language,
  'new person': people,
  'camera move': camera,
  contradiction,
};

/** The fault of a sentence after the prompt; null where it may be added. */
export function problemOf(sentence: string, prompt: Prompt): string | null {
  for (const [name, check] of Object.entries(checks)) {
    const problem = check(sentence, prompt);
    if (problem !== null) return `${name}: ${problem}`.slice(0, 200);
  }
  return null;
}

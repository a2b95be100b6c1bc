import { hasSexualTerm, namesChild } from '../contract';
import {
  contentWords,
  detectLanguage,
  folded,
  hasWord,
  isSameWord,
  lengthOf,
  occurrences,
  wholeWord,
} from './lexicon';
import { clausesOf, type ParsedPrompt, positions, without } from './protect';

/** Limit of the video model's text encoder. */
export const maxTokens = 512;

/** A rewritten text, and the whole prompt that it becomes. */
export interface Candidate {
  readonly prompt: ParsedPrompt;
  /** The rewritten sentences. */
  readonly body: string;
  /** {@link body} with trigger words and negated clauses. */
  readonly text: string;
  /** Tokens of {@link text}. */
  readonly tokens: number;
}

/** What is wrong, in a few words; null where nothing is. */
type Check = (candidate: Candidate) => string | null;

const matches = (text: string, pattern: RegExp) => folded(text).match(pattern) ?? [];

/** Every protected span is there verbatim and as often as before, those in the sentences in their order. */
const protectedSpans: Check = ({ prompt, body, text }) => {
  for (const { kind, text: span } of prompt.spans) {
    const count =
      kind === 'trigger'
        ? (where: string) => where.match(wholeWord(span, 'gu'))?.length ?? 0
        : (where: string) => occurrences(where, span);
    if (count(text) !== count(prompt.original) || count(text) === 0) return `span ${span}`;
  }
  if (positions(body, prompt.inPlace) === null) return 'order of spans';
  const marks = (where: string) => where.replace(/[^[\]{}<>"“”„「」『』《》«»]/gu, '');
  const sorted = (where: string) => [...marks(where)].sort().join('');
  return sorted(text) === sorted(prompt.original) ? null : 'new brackets or quotes';
};

const frame =
  /<\/?think|```|^\s*(?:#|[-*•]\s|\d+[.)]\s)|^(?:here(?:'s| is| are)\b|prompt\s*[:：]|as an ai\b|i (?:can|am sorry|cannot)\b)/imu;

/** Finished sentences without frame, list, broken characters or repetition. */
const form: Check = ({ prompt, body }) => {
  if (body.trim() === '') return 'empty';
  const own = without(body, prompt.inPlace);
  if (/\uFFFD|\p{Cc}|\p{Cs}/u.test(own)) return 'broken characters';
  if (!/[.!?…。！？]$/u.test(body)) return 'unfinished sentence';
  if (frame.test(own)) return 'frame or list';
  const chinese = prompt.lexicon.language === 'zh';
  const units = folded(own).match(chinese ? /\p{Script=Han}/gu : /[\p{L}\p{N}]+/gu) ?? [];
  const size = chinese ? 12 : 6;
  const seen = new Set<string>();
  for (let i = 0; i + size <= units.length; i++) {
    const gram = units.slice(i, i + size).join(' ');
    if (seen.has(gram)) return 'repetition';
    seen.add(gram);
  }
  return null;
};

/** 15 to 120 words (Chinese: 20 to 200 characters), with at least 80 % of the content words. */
const content: Check = ({ prompt, body }) => {
  const { lexicon } = prompt;
  const length = lengthOf(body, lexicon);
  const [least, most] = lexicon.language === 'zh' ? [20, 200] : [15, 120];
  if (length < least || length > most) return `length ${length}`;
  const words = [...new Set(contentWords(without(prompt.source, prompt.inPlace), lexicon))];
  const there = contentWords(without(body, prompt.inPlace), lexicon);
  const missing = words.filter((word) => !hasWord(there, word));
  return missing.length > words.length * 0.2 ? `missing ${missing.slice(0, 5).join(' ')}` : null;
};

function numbersIn(text: string, prompt: ParsedPrompt): string {
  const digits = text.matchAll(/\p{N}+(?:[.,]\p{N}+)*/gu);
  const numbers = [...digits].map((m) => [m.index, m[0]] as const);
  for (const [value, pattern] of prompt.lexicon.numbers) {
    for (const { index } of folded(text).matchAll(pattern)) numbers.push([index, value]);
  }
  return numbers
    .sort((a, b) => a[0] - b[0])
    .map(([, value]) => value)
    .join(' ');
}

/** Capitalised words; at the beginning of a sentence only those that our lists do not know. */
function namesIn(text: string, prompt: ParsedPrompt): { inner: string[]; all: string[] } {
  const inner: string[] = [];
  const all: string[] = [];
  for (const { index, 0: word } of text.matchAll(/(?<![\p{L}\p{N}])\p{Lu}[\p{L}\p{N}]+/gu)) {
    const initial = /(?:^|[.!?…\n])\s*$/u.test(text.slice(0, index));
    if (!initial) inner.push(word.toLowerCase());
    if (!initial || !prompt.lexicon.known.has(word.toLowerCase())) all.push(word.toLowerCase());
  }
  return { inner, all };
}

/** The same numbers in the same order; every name, and no new one (German: any noun has a capital letter). */
const numbersAndNames: Check = ({ prompt, body }) => {
  const source = without(prompt.source, prompt.inPlace);
  const own = without(body, prompt.inPlace);
  if (numbersIn(source, prompt) !== numbersIn(own, prompt)) return 'numbers';
  if (prompt.lexicon.language === 'zh') return null;
  const words = contentWords(own, prompt.lexicon);
  const lost = namesIn(source, prompt).all.find(
    (name) => !prompt.lexicon.stopWords.has(name) && !hasWord(words, name),
  );
  if (lost !== undefined) return `name ${lost}`;
  if (prompt.lexicon.language === 'de') return null;
  const sourceWords = contentWords(source, prompt.lexicon);
  const added = namesIn(own, prompt).inner.find(
    (name) => !prompt.lexicon.stopWords.has(name) && !hasWord(sourceWords, name),
  );
  return added === undefined ? null : `new name ${added}`;
};

/** Directions in their order, none turned around; the camera moves of the prompt and no other. */
const directionsAndCamera: Check = ({ prompt, body }) => {
  const { lexicon } = prompt;
  const source = without(prompt.source, prompt.inPlace);
  const own = without(body, prompt.inPlace);
  const sequence = (text: string) =>
    lexicon.directions
      .flatMap((pair, i) =>
        pair.flatMap((side, j) =>
          [...folded(text).matchAll(side)].map((m) => ({ at: m.index, id: `${i}${j}` })),
        ),
      )
      .sort((a, b) => a.at - b.at)
      .map(({ id }) => id);
  const expected = sequence(source);
  const there = sequence(own);
  let next = 0;
  for (const id of there) if (id === expected[next]) next++;
  if (next < expected.length) return 'directions';
  const opposite = (id: string) => id.slice(0, -1) + (id.endsWith('0') ? '1' : '0');
  if (expected.some((id) => there.includes(opposite(id)) && !expected.includes(opposite(id)))) {
    return 'opposite direction';
  }
  const moves = (text: string) =>
    lexicon.moves.filter(([, pattern]) => matches(text, pattern).length > 0).map(([name]) => name);
  const lost = moves(source).find((name) => !moves(own).includes(name));
  if (lost !== undefined) return `camera move ${lost}`;
  const userMoves = moves(prompt.original);
  const added = moves(own).filter((name) => !userMoves.includes(name));
  if (added.some((name) => name !== 'static' || userMoves.length > 0)) return 'second camera move';
  const speaksOfCamera = matches(own, lexicon.camera).length > 0;
  const knowsCamera = matches(prompt.original, lexicon.camera).length > 0;
  return speaksOfCamera && !knowsCamera && moves(own).length === 0 ? 'unknown camera move' : null;
};

const sameLanguage: Check = ({ prompt, body }) =>
  detectLanguage(without(body, prompt.inPlace)) === prompt.lexicon.language ? null : 'language';

/** No person, intimate part of the body, sexual term or child that the prompt does not name. */
const noNewPeople: Check = ({ prompt, body }) => {
  const { original, lexicon } = prompt;
  for (const pattern of [lexicon.persons, lexicon.intimate]) {
    const known = new Set(matches(original, pattern));
    const added = matches(body, pattern).find((word) => !known.has(word));
    if (added !== undefined) return `new word ${added}`;
  }
  if (namesChild(body) && !namesChild(original)) return 'new child term';
  return hasSexualTerm(body) && !hasSexualTerm(original) ? 'new sexual term' : null;
};

const tokenLimit: Check = ({ tokens }) => (tokens <= maxTokens ? null : `${tokens} tokens`);

/** What a negated clause names does not occur without a negation, and nothing of the prompt is negated. */
const negations: Check = ({ prompt, body }) => {
  const { lexicon } = prompt;
  const own = without(body, prompt.inPlace);
  const source = contentWords(without(prompt.source, prompt.inPlace), lexicon);
  const positive: string[] = [];
  const negative: string[] = [];
  for (const clause of clausesOf(own, [])) {
    const words = own.slice(clause.start, clause.end);
    const negated = matches(words, lexicon.negation).length > 0;
    (negated ? negative : positive).push(...contentWords(words, lexicon));
  }
  const isNegation = (word: string) => matches(word, lexicon.negation).length > 0;
  const banned = prompt.negated
    .flatMap(({ text }) => contentWords(text, lexicon))
    .filter((word) => !isNegation(word) && !hasWord(source, word));
  const named = banned.find((word) => hasWord(positive, word));
  if (named !== undefined) return `names ${named}`;
  const turned = source.find(
    (word) => !isNegation(word) && negative.some((n) => isSameWord(n, word)),
  );
  return turned === undefined ? null : `negates ${turned}`;
};

/** The checks of a rewritten prompt by their names, in the order in which they run. */
export const checks: Readonly<Record<string, Check>> = {
  'V1 protected spans': protectedSpans,
  'V2 form': form,
  'V3 content': content,
  'V4 numbers and names': numbersAndNames,
  'V5 directions and camera': directionsAndCamera,
  'V6 language': sameLanguage,
  'V7 people': noNewPeople,
  'V8 token limit': tokenLimit,
  'V9 negations': negations,
};

/** Names of the checks that fail, with what is wrong; empty for a text that may be used. */
export function failures(candidate: Candidate, except?: string): string[] {
  return Object.entries(checks).flatMap(([name, check]) => {
    const problem = name === except ? null : check(candidate);
    return problem === null ? [] : [`${name}: ${problem}`.slice(0, 200)];
  });
}

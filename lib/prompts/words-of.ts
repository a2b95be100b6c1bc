import { folded, type Lexicon } from './lexicon';

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

export function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&');
}

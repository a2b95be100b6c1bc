import {
  contentWords,
  detectLanguage,
  folded,
  type Lexicon,
  lengthOf,
  lexicons,
  wholeWord,
} from './lexicon';

/** A piece of the prompt that every result has verbatim. */
export interface Span {
  readonly kind: 'bracket' | 'quote' | 'url' | 'trigger' | 'negation';
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** A prompt in its parts; `source` is what the model rewrites. */
export interface ParsedPrompt {
  readonly original: string;
  readonly lexicon: Lexicon;
  /** All protected spans of the original, in order. */
  readonly spans: readonly Span[];
  /** Trigger words that are a clause of their own: they stand in front of the result. */
  readonly front: readonly string[];
  /** What the model sees: the original without `front` and `negated`. */
  readonly source: string;
  /** Protected spans inside `source`, in order: they stay in their sentence. */
  readonly inPlace: readonly string[];
  /** Negated clauses: they stand at the end of the result. */
  readonly negated: readonly { readonly text: string; readonly endsSentence: boolean }[];
}

/** More words, in Chinese characters, than these are left alone. */
const maxWords = 120;
const maxHan = 200;
/** More spans inside the sentences than these cannot be placed well. */
const maxInPlace = 12;

const brackets: Readonly<Record<string, string>> = { '[': ']', '{': '}', '<': '>' };
const quotes: Readonly<Record<string, string>> = {
  '"': '"',
  '“': '”',
  '„': '“”',
  '「': '」',
  '『': '』',
  '《': '》',
  '«': '»',
};
const closers = new Set([']', '}', '>', '”', '」', '』', '》', '»']);
/** Single quotes around several words; an apostrophe between letters closes nothing. */
const singleQuoted =
  /['‘](?=\S)(?:[^'‘’\n]|(?<=\p{L})['’](?=\p{L}))*\s(?:[^'‘’\n]|(?<=\p{L})['’](?=\p{L}))*['’](?![\p{L}\p{N}])/uy;
const url = /(?:https?:\/\/|www\.)[^\s，。、；！？]*[^\s，。、；！？.,;:!?)'"”»>]/iuy;

/** End of a bracket that opens at `start`, with its own kind nested; -1 without one. */
function bracketEnd(prompt: string, start: number, open: string, close: string): number {
  let depth = 0;
  for (let i = start; i < prompt.length; i++) {
    if (prompt[i] === open) depth++;
    if (prompt[i] === close) depth--;
    if (depth === 0) return i + 1;
  }
  return -1;
}

/** Brackets, quotes and addresses, the outermost ones; null where one of them does not end or begin. */
function delimitedSpans(prompt: string): Span[] | null {
  const spans: Span[] = [];
  let at = 0;
  const add = (kind: Span['kind'], end: number) => {
    spans.push({ kind, start: at, end, text: prompt.slice(at, end) });
    at = end;
  };
  while (at < prompt.length) {
    const char = prompt[at] ?? '';
    const wordBefore = /[\p{L}\p{N}]/u.test(prompt[at - 1] ?? '');
    url.lastIndex = at;
    singleQuoted.lastIndex = at;
    const close = brackets[char];
    const quote = quotes[char];
    if (close !== undefined) {
      const end = bracketEnd(prompt, at, char, close);
      if (end < 0) return null;
      add('bracket', end);
    } else if (quote !== undefined) {
      const length = prompt.slice(at + 1).search(new RegExp(`[${quote}]`));
      if (length < 0) return null;
      add('quote', at + 2 + length);
    } else if (closers.has(char)) {
      return null;
    } else if (!wordBefore && url.test(prompt)) {
      add('url', url.lastIndex);
    } else if (!wordBefore && singleQuoted.test(prompt)) {
      add('quote', singleQuoted.lastIndex);
    } else {
      at++;
    }
  }
  return spans;
}

/** Trigger words outside of other spans, whole words in any case, the longest first. */
function triggerSpans(
  prompt: string,
  triggerWords: readonly string[],
  taken: readonly Span[],
): Span[] {
  const spans: Span[] = [];
  const words = [...new Set(triggerWords.map((word) => word.trim()))].filter((word) => word !== '');
  words.sort((a, b) => b.length - a.length);
  for (const word of words) {
    for (const { index: start, 0: text } of prompt.matchAll(wholeWord(word, 'giu'))) {
      const end = start + text.length;
      if ([...taken, ...spans].some((span) => span.start < end && start < span.end)) continue;
      spans.push({ kind: 'trigger', start, end, text });
    }
  }
  return spans;
}

/** The text with these spans replaced by the same number of other characters. */
export function masked(
  text: string,
  spans: readonly Pick<Span, 'start' | 'end'>[],
  filler = ' ',
): string {
  let result = text;
  for (const { start, end } of spans) {
    result = result.slice(0, start) + filler.repeat(end - start) + result.slice(end);
  }
  return result;
}

export interface Clause {
  readonly start: number;
  readonly end: number;
  /** The delimiter and the white space after it. */
  readonly delimiter: string;
  readonly endsSentence: boolean;
}

const delimiter = /[,;:.!?…]+(?=\s|$)|[，、；：。！？\n]+|\s[–—-]+(?=\s)/gu;

/** The clauses of a text; a delimiter inside a span is none. */
export function clausesOf(prompt: string, spans: readonly Span[]): Clause[] {
  const text = masked(prompt, spans, 'x');
  const clauses: Clause[] = [];
  let from = 0;
  const add = (to: number, mark: string) => {
    const piece = prompt.slice(from, to);
    const start = from + piece.length - piece.trimStart().length;
    const end = from + piece.trimEnd().length;
    if (end > start) {
      clauses.push({ start, end, delimiter: mark, endsSentence: /[.!?…。！？\n]/u.test(mark) });
    }
    from = to + mark.length;
  };
  for (const match of text.matchAll(delimiter)) add(match.index, match[0]);
  add(prompt.length, '');
  return clauses;
}

const conjunction = /^(?:or|nor|and|und|oder|noch|ou|et|ni|o|y|e|né|nem)(?![\p{L}])|^[或和及与]/iu;

/**
 * Runs of clauses that stay together because they are negated. A list goes on after its negation ("no text,
 * logo or watermark"): short clauses and those that begin with "or" or "and" belong to it until the sentence
 * ends.
 */
function negatedRuns(
  prompt: string,
  clauses: readonly Clause[],
  mask: string,
  lexicon: Lexicon,
): Clause[][] {
  const runs: Clause[][] = [];
  let open = false;
  for (const clause of clauses) {
    const text = mask.slice(clause.start, clause.end);
    const negated = (folded(text).match(lexicon.negation)?.length ?? 0) > 0;
    const run = runs.at(-1);
    const words = prompt.slice(clause.start, clause.end);
    const continues: boolean = open && (lengthOf(words, lexicon) <= 4 || conjunction.test(words));
    if (run !== undefined && open && (negated || continues)) run.push(clause);
    else if (negated) runs.push([clause]);
    open = (negated || continues) && !clause.endsSentence;
  }
  return runs;
}

/** Takes a prompt apart, or says why it is left as it is. */
export function parsePrompt(
  original: string,
  triggerWords: readonly string[],
): ParsedPrompt | { readonly reason: string } {
  const han = original.match(/\p{Script=Han}/gu)?.length ?? 0;
  if (original.split(/\s+/u).length > maxWords || han > maxHan || original.length > 4000) {
    return { reason: 'long' };
  }
  // Broken characters, control characters and lone surrogates cannot be repeated by a model.
  if (/\uFFFD|(?![\n\t\r])\p{Cc}|\p{Cs}/u.test(original)) return { reason: 'characters' };
  if (/\(\(|\([^()]*:\s*[+-]?[\d.]+\s*\)/u.test(original)) return { reason: 'weights' };
  const delimited = delimitedSpans(original);
  if (delimited === null) return { reason: 'unbalanced' };
  const fixed = [...delimited, ...triggerSpans(original, triggerWords, delimited)];
  fixed.sort((a, b) => a.start - b.start);

  const mask = masked(original, fixed);
  if (!/\p{L}/u.test(mask)) return { reason: 'empty' };
  const language = detectLanguage(mask);
  if (language === null) return { reason: 'language' };
  const lexicon = lexicons[language];

  const clauses = clausesOf(original, fixed);
  const negations = negatedRuns(original, clauses, mask, lexicon).map((run) => {
    const { end = 0, endsSentence = false } = run.at(-1) ?? {};
    const { start = end } = run[0] ?? {};
    const text = original.slice(start, end);
    return { kind: 'negation' as const, start, end, text, endsSentence };
  });
  const inside = (span: { start: number; end: number }) =>
    negations.some((negation) => negation.start <= span.start && span.end <= negation.end);

  const front: string[] = [];
  const inPlace: string[] = [];
  let source = '';
  for (const clause of clauses) {
    if (inside(clause)) continue;
    const within = fixed.filter((span) => clause.start <= span.start && span.end <= clause.end);
    const text = original.slice(clause.start, clause.end);
    const triggersAlone =
      within.every((span) => span.kind === 'trigger') &&
      mask.slice(clause.start, clause.end).trim() === '';
    if (triggersAlone && within.length > 0) {
      front.push(text);
    } else {
      source +=
        text +
        clause.delimiter +
        (lexicon.language === 'zh' || clause.delimiter.endsWith('\n') ? '' : ' ');
      inPlace.push(...within.map((span) => span.text));
    }
  }
  source = source.trim().replace(/(?:[,;:，、；：]|\s[–—-]+)$/u, '');
  if (inPlace.length > maxInPlace) return { reason: 'spans' };
  if (contentWords(without(source, inPlace), lexicon).length === 0) return { reason: 'empty' };
  return {
    original,
    lexicon,
    spans: [...fixed.filter((span) => !inside(span)), ...negations],
    front,
    source,
    inPlace,
    negated: negations,
  };
}

/** Where pieces lie in a text, each after the one before it; null where one is missing. */
export function positions(
  text: string,
  pieces: readonly string[],
): { start: number; end: number }[] | null {
  const spans: { start: number; end: number }[] = [];
  let from = 0;
  for (const piece of pieces) {
    const start = text.indexOf(piece, from);
    if (start < 0) return null;
    from = start + piece.length;
    spans.push({ start, end: from });
  }
  return spans;
}

/** A text without its spans: what the checks of words look at. */
export function without(text: string, pieces: readonly string[]): string {
  return masked(text, positions(text, pieces) ?? []);
}

/** Trigger words, the rewritten text and the negated clauses: the text for the video model. */
export function joinPrompt(prompt: ParsedPrompt, body: string): string {
  const chinese = prompt.lexicon.language === 'zh';
  const [comma, stop, space] = chinese ? ['，', '。', ''] : [', ', '.', ' '];
  const negated = prompt.negated.reduce((text, clause, i) => {
    const last = i === prompt.negated.length - 1;
    const end = last || clause.endsSentence ? stop + (last ? '' : space) : comma;
    return text + clause.text + end;
  }, '');
  const front = prompt.front.map((trigger) => trigger + comma).join('');
  return front + body + (negated === '' ? '' : space + negated);
}

/** The original with sentences after it; the original itself is not changed. */
export function appendSentences(prompt: ParsedPrompt, text: string, added: string): string {
  const chinese = prompt.lexicon.language === 'zh';
  const kept = text.trimEnd();
  const finished = /[.!?…。！？]$/u.test(kept);
  const stop = finished ? '' : chinese ? '。' : '.';
  return kept + stop + (chinese ? '' : ' ') + added;
}

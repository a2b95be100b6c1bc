import { masked, positions } from './protect';

const sentenceEnd = /[.!?…]+(?=\s|$)|[。！？]+/gu;

/** The finished sentences of a text; an end inside a protected span ends none. */
export function sentencesOf(text: string, inPlace: readonly string[]): string[] {
  const mask = masked(text, positions(text, inPlace) ?? [], 'x');
  const sentences: string[] = [];
  let from = 0;
  for (const { index, 0: mark } of mask.matchAll(sentenceEnd)) {
    const end = index + mark.length;
    sentences.push(text.slice(from, end).trim());
    from = end;
  }
  return sentences;
}

/** Chinese sentences follow each other without a space. */
export function joinSentences(sentences: readonly string[]): string {
  return sentences
    .map(
      (sentence, i) => (i === 0 || /[。！？]$/u.test(sentences[i - 1] ?? '') ? '' : ' ') + sentence,
    )
    .join('');
}

const frames = [
  /<think>[\s\S]*?<\/think>/giu,
  /^```\w*\s*|\s*```$/gu,
  /^(?:sure|certainly|of course|okay|ok)\b[,.!:]?\s*/iu,
  /^here(?:'s| is| are)\b[^:\n]{0,60}:\s*/iu,
  /^(?:\*\*)?(?:(?:rewritten|improved|revised|new|final)\s+)?(?:prompt|instruction|answer|output|anweisung|antwort|réponse|respuesta|risposta|resposta|提示词|改写|回答)(?:\*\*)?\s*[:：]\s*/iu,
];

/** An answer without what a model puts around it, up to its last finished sentence. */
export function cleanAnswer(answer: string, inPlace: readonly string[]): string {
  let text = answer.trim();
  for (const frame of frames) text = text.replace(frame, '').trim();
  const quoted = /^(["“「])([\s\S]*)(["”」])$/u.exec(text);
  if (quoted?.[2] !== undefined && !inPlace.some((span) => text.startsWith(span))) text = quoted[2];
  // A list keeps its lines, so that it is recognised as one.
  if (!/^\s*(?:[-*•]|\d+[.)]|#)\s/mu.test(text)) text = text.replace(/\s*\n\s*/gu, ' ');
  const sentences = sentencesOf(text, inPlace);
  return /\n/u.test(text) ? text : joinSentences(sentences);
}

import type { ParsedPrompt } from './protect';

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

import { z } from 'zod';

/**
 * What became of a prompt that was to be optimised. `used`: the user's words and sentences of the model after
 * them; `edited`: that, changed by the user; the original alone: `unchanged` (there was a reason to leave it),
 * `unavailable` (no language model), `failed` (no usable sentence).
 */
export const promptOptimizationStatuses = [
  'used',
  'edited',
  'unchanged',
  'unavailable',
  'failed',
] as const;
export type PromptOptimizationStatus = (typeof promptOptimizationStatuses)[number];

/** The record of an optimisation, kept with the result and sent to the relay. */
export const promptOptimizationSchema = z.object({
  status: z.enum(promptOptimizationStatuses),
  /** The prompt as the user wrote it. */
  original: z.string().max(20_000),
  /** The prompt that the video was made with. */
  text: z.string().max(20_000),
  /** Why the text is as it is: why sentences were left out, or one reason; for people and tests. */
  reasons: z.array(z.string().max(200)).max(50).default([]),
  /** Name of the language model; null where none ran. */
  model: z.string().max(200).nullable().default(null),
  /** SHA-256 of its file, in hex; null where none ran. */
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .nullable()
    .default(null),
  /** Seed of the sampling; null where none ran. */
  seed: z.int().min(0).nullable().default(null),
  milliseconds: z.int().min(0).default(0),
});
export type PromptOptimization = z.output<typeof promptOptimizationSchema>;

/** The finished sentences of a text, without what lies between them. */
export function sentencesOf(text: string): string[] {
  return text.match(/[^\s.!?…。！？][^。！？]*?(?:[.!?…]+(?=\s|$)|[。！？]+)/gu) ?? [];
}

/** A text with sentences after it; the text itself is not changed. */
export function withSentences(text: string, sentences: readonly string[]): string {
  const [first] = sentences;
  if (first === undefined) return text;
  const isChinese = /[。！？]$/u.test(first);
  const space = isChinese ? '' : ' ';
  const isOpen = !/[.!?…。！？,;:，；：、]$/u.test(text.trimEnd());
  const stop = isOpen ? (isChinese ? '。' : '.') : '';
  return text + stop + space + sentences.join(space);
}

/** The sentences that an optimisation added and that are still in the prompt; none where it rewrote it. */
export function addedSentences(
  { original, text }: PromptOptimization,
  prompt: string,
): readonly string[] {
  if (!text.startsWith(original)) return [];
  return sentencesOf(text.slice(original.length)).filter((sentence) => prompt.includes(sentence));
}

/** A prompt without one of its {@link addedSentences}; the user's own words where it was the last one. */
export function withoutSentence(
  optimization: PromptOptimization,
  prompt: string,
  sentence: string,
): string {
  const { original } = optimization;
  const added = addedSentences(optimization, prompt);
  if (prompt === withSentences(original, added)) {
    return withSentences(
      original,
      added.filter((other) => other !== sentence),
    );
  }
  // The user has edited around it.
  const at = prompt.lastIndexOf(sentence);
  return prompt.slice(0, at).trimEnd() + prompt.slice(at + sentence.length);
}

import { z } from 'zod';

/**
 * The outcome of a prompt's optimisation. `used`: the user's words and sentences of the model after
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

/** The length of a prompt, by the tokenizer of a video model. */
export interface PromptLength {
  /** Tokens of the whole prompt, its end token included. */
  readonly tokens: number;
  /** Most tokens that the model reads. */
  readonly limit: number;
  /** Characters (UTF-16) of the prompt that the model reads; what comes after them is cut. */
  readonly kept: number;
}

/** A prompt to improve. */
export interface OptimizerRequest {
  readonly prompt: string;
  /** Id of the video model, whose tokenizer limits the length. */
  readonly model: string;
  /** Never −1. */
  readonly seed: number;
  /** Milliseconds of writing, without loading the language model; 20 000 when absent. */
  readonly timeLimitMs?: number;
}

/** Interface of the optimizer worker, called through Comlink. Improving is cancelled by ending the worker. */
export interface OptimizerApi {
  /**
   * Continues a prompt with the installed language model, whose memory is freed before this returns.
   *
   * @param onText sees the unchecked text as it is written
   * @returns `unavailable` where no language model is installed
   * @throws KinoraError `LANGUAGE_MODEL_FAILED`, `MODEL_FILE_INVALID`, `MODEL_UNKNOWN`
   */
  optimize(
    request: OptimizerRequest,
    onText?: (soFar: string) => void,
  ): Promise<PromptOptimization>;
  /**
   * Measures a text with the tokenizer of a video model, which stays in memory: about 170 MB for the real one.
   *
   * @param model the bundled model's tokenizer serves where it is not installed; it counts at least as many
   * @throws KinoraError `MODEL_UNKNOWN`, and those of the model's files
   */
  measurePrompt(model: string, text: string): Promise<PromptLength>;
}

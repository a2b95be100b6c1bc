import { z } from 'zod';

/**
 * What became of a prompt that was to be optimised. `used`: the model's text; `edited`: the model's text,
 * changed by the user; `salvaged`: the original with single sentences of the model; the original alone:
 * `unchanged` (there was a reason to leave it), `unavailable` (no language model), `failed` (no usable text).
 */
export const promptOptimizationStatuses = [
  'used',
  'edited',
  'salvaged',
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
  /** Why the text is as it is: names of checks that failed, or one reason; for people and tests. */
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

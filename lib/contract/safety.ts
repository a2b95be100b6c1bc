import { z } from 'zod';

/**
 * What the safety checker found in a video. `clear` and `flagged` come from a checker that ran; `off`
 * means that none was asked for; `unverified` means that one was asked for and gave no verdict.
 */
export const safetyStatuses = ['clear', 'flagged', 'unverified', 'off'] as const;
export type SafetyStatus = (typeof safetyStatuses)[number];

/** Why a video is unverified: the checker failed on every backend, or none was there. */
export const unverifiedReasons = ['missing', 'failed'] as const;
export type UnverifiedReason = (typeof unverifiedReasons)[number];

/** A score from this on flags, where the checker has no threshold of its own. */
export const safetyThreshold = 0.5;

const score = z.number().min(0).max(1);

/** The record of a check, kept with the result and sent to the relay. */
export const safetySchema = z.object({
  status: z.enum(safetyStatuses),
  /** Only with the status `unverified`. */
  reason: z.enum(unverifiedReasons).nullable().default(null),
  /** Score of the video: the mean of the two highest scores of its frames; null without a verdict. */
  score: score.nullable().default(null),
  /** Score of the input image; null where it was not scored. */
  input: score.nullable().default(null),
  /** Scores of the frames that were looked at, in order. */
  frames: z.array(score).max(1000).default([]),
  threshold: score.default(safetyThreshold),
  /** Repository or name of the checker; null where none ran. */
  model: z.string().max(200).nullable().default(null),
  /** SHA-256 of the checker's weights, in hex. */
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .nullable()
    .default(null),
});
export type Safety = z.output<typeof safetySchema>;

/** The record of a run without a checker. */
export function uncheckedSafety(
  status: 'off' | 'unverified',
  reason: UnverifiedReason | null = null,
): Safety {
  return safetySchema.parse({ status, reason });
}

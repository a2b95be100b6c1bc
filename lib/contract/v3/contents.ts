import { z } from 'zod';
import { type PromptOptimization, promptOptimizationStatuses } from '../prompt-optimization';
import { type Safety, type SafetyStatus, safetyStatuses, unverifiedReasons } from '../safety';
import { isFlagged } from '../safety-flag';

/** Facts on a video and its prompt in a result, a list, an event and a webhook. */
export const contentsSchema = z.object({
  has_nsfw_contents: z
    .array(z.boolean())
    .describe(
      'One per output. True: the safety checker flagged the video, or it was asked for and gave no verdict (`safety.status` is `unverified`). False: checked and clear, or not asked for.',
    ),
  safety: z
    .object({
      status: z
        .enum(safetyStatuses)
        .describe(
          '`clear` or `flagged`: the verdict of the checker that `model` names. `off`: no check was asked for. `unverified`: asked for, without a verdict.',
        ),
      reason: z
        .enum(unverifiedReasons)
        .optional()
        .describe(
          'Why it is `unverified`. `failed`: the check failed on the GPU and on the CPU. `missing`: the checker was deleted meanwhile.',
        ),
      score: z
        .number()
        .nullable()
        .describe(
          'The mean of the two highest frames, 0 to 1; from 0.5 on it flags, with the quick checker from 0.6 on.',
        ),
      model: z
        .string()
        .nullable()
        .describe('The checker; `nsfwjs-mobilenet-v2` is the quick one that comes with Kinora.'),
      sha256: z.string().nullable().describe('SHA-256 of the checker’s weights.'),
    })
    .optional()
    .describe('What the worker reported of the check; only when completed.'),
  optimized_prompt: z
    .string()
    .optional()
    .describe(
      'The prompt that the video was made with; only when completed, and if `enable_prompt_optimizer` asked for it. In a list only with `include_inputs`. `input.prompt` stays as it was sent.',
    ),
  prompt_optimization: z
    .object({
      status: z
        .enum(promptOptimizationStatuses)
        .describe(
          '`used`: your prompt and sentences of the model after it. Your prompt alone: `unchanged` (there was a reason to leave it), `unavailable` (the worker had no language model), `failed` (no sentence that fits to it).',
        ),
      model: z.string().nullable().describe('The language model; null where none ran.'),
      sha256: z.string().nullable().describe('SHA-256 of its file; null where it is not known.'),
      seed: z
        .int()
        .optional()
        .describe(
          'With the same seed the same model writes the same text; absent where it takes none.',
        ),
    })
    .optional()
    .describe('How `optimized_prompt` came about; present with it.'),
});

/** Stored facts on a finished job's video and prompt; null where there is nothing. */
export interface Contents {
  readonly safety: SafetyStatus | null;
  readonly safetyRecord: Safety | null;
  readonly promptOptimization: PromptOptimization | null;
}

/**
 * The fields of {@link contentsSchema} for a job. A job of a version without a checker has a status and no
 * record: its flag stays false, as its webhook said.
 */
export function describeContents(
  { safety: status, safetyRecord, promptOptimization }: Contents,
  outputs: readonly string[],
): z.output<typeof contentsSchema> {
  const flag = safetyRecord !== null && isFlagged(safetyRecord);
  return {
    has_nsfw_contents: outputs.map(() => flag),
    ...(status !== null && { safety: describeSafety(status, safetyRecord) }),
    ...(promptOptimization !== null && {
      optimized_prompt: promptOptimization.text,
      prompt_optimization: describeOptimization(promptOptimization),
    }),
  };
}

function describeSafety(status: SafetyStatus, record: Safety | null) {
  const { reason = null, score = null, model = null, sha256 = null } = record ?? {};
  return { status, ...(reason && { reason }), score, model, sha256 };
}

function describeOptimization({ status, model, sha256, seed }: PromptOptimization) {
  return { status, model, sha256, ...(seed !== null && { seed }) };
}

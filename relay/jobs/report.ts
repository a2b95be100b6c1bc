import { promptOptimizationSchema, uncheckedSafety } from '../../lib/contract';
import { ApiError, type Completion } from '../../lib/contract/v3';
import type { JobRow } from '../store/schema';

/** What a worker reports of the check of its video and of the prompt. */
type Report = Pick<Completion, 'safety' | 'prompt_optimization'>;

/**
 * Compares a worker's report with what its job asked for. It finds mistakes only: a relay cannot verify a
 * tab's word.
 *
 * @returns what is stored
 * @throws ApiError `INVALID_PARAMETER` where the report contradicts the job or itself
 */
export function checkReport(
  { input, seed: given }: Pick<JobRow, 'input' | 'seed'>,
  { seed, safety, prompt_optimization }: Report & Pick<Completion, 'seed'>,
): Report {
  if (seed !== given) throw refused('seed', `${given}, the seed of the job.`);
  const isAsked = input.enable_safety_checker;
  const problem = isAsked ? verdictProblem(safety) : unaskedProblem(safety);
  if (problem !== null) throw refused('safety.status', problem);
  return {
    // A check that was not asked for and did not run is off, whatever the worker calls it.
    safety: isAsked ? safety : uncheckedSafety('off'),
    prompt_optimization: promptOf(input, prompt_optimization),
  };
}

/** What is wrong with the report of a check that was asked for; null where it may be right. */
function verdictProblem({
  status,
  reason,
  score,
  frames,
  threshold,
  model,
  sha256,
}: Report['safety']): string | null {
  if (status === 'off') return 'not off: the job asks for the check.';
  if (status === 'unverified') return reason === 'failed' ? null : 'unverified because it failed.';
  if (model === null || sha256 === null) return `${status} with the checker and its SHA-256.`;
  if (score === null || frames.length === 0) return `${status} with a score and those of frames.`;
  const found = score >= threshold ? 'flagged' : 'clear';
  return status === found ? null : `${found}, as the score ${score} says.`;
}

function unaskedProblem({ status }: Report['safety']): string | null {
  return status === 'off' || status === 'unverified' ? null : 'off: the job asks for no check.';
}

function promptOf(
  { enable_prompt_optimizer: isAsked, prompt }: JobRow['input'],
  record: Report['prompt_optimization'],
): Report['prompt_optimization'] {
  if (!isAsked) {
    if (record === null) return null;
    throw refused('prompt_optimization', 'null: the job does not ask for it.');
  }
  // A video that was made before a worker could optimise.
  const told =
    record ??
    promptOptimizationSchema.parse({ status: 'unavailable', original: prompt, text: prompt });
  if (told.original === prompt) return told;
  throw refused('prompt_optimization.original', 'the prompt of the job.');
}

function refused(field: string, message: string): ApiError {
  const sentence = 'The report of the worker contradicts its job.';
  return new ApiError('INVALID_PARAMETER', sentence, {
    details: [{ field, message: `It must be ${message}` }],
  });
}

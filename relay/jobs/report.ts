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
  const { enable_safety_checker: isAsked, enable_prompt_optimizer: isOptimized, prompt } = input;
  const problem = isAsked ? verdictProblem(safety) : unaskedProblem(safety);
  if (problem !== null) throw refused('safety.status', problem);
  if (!isOptimized && prompt_optimization !== null) {
    throw refused('prompt_optimization', 'null: the job does not ask for it.');
  }
  // A worker that cannot optimise says nothing.
  const unavailable = { status: 'unavailable', original: prompt, text: prompt };
  const told = prompt_optimization ?? promptOptimizationSchema.parse(unavailable);
  if (told.original !== prompt) {
    throw refused('prompt_optimization.original', 'the prompt of the job.');
  }
  return {
    // A check that was not asked for and did not run is off, whatever the worker calls it.
    safety: isAsked ? safety : uncheckedSafety('off'),
    prompt_optimization: isOptimized ? told : null,
  };
}

/** What is wrong with the report of a check that was asked for; null where it may be right. */
function verdictProblem(safety: Report['safety']): string | null {
  const { status, reason, score, frames, threshold, model, sha256 } = safety;
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

function refused(field: string, message: string): ApiError {
  const sentence = 'The report of the worker contradicts its job.';
  return new ApiError('INVALID_PARAMETER', sentence, {
    details: [{ field, message: `It must be ${message}` }],
  });
}

import { KinoraError, toKinoraError } from '../../lib/contract/errors';
import { parameterRanges, parseParameters } from '../../lib/contract/request';
import { type FormState, type NumberName, toBudgetBytes, toNumber } from './form-state';

/** What each number is called on the page. */
export const labels: Readonly<Record<NumberName, string>> = {
  num_inference_steps: 'Steps',
  duration: 'Duration',
  guidance_scale: 'Guidance',
  flow_shift: 'Flow shift',
  seed: 'Seed',
};

export const numberNames = Object.keys(parameterRanges) as NumberName[];

/** Least and most of a memory budget, in GiB. What a video needs at least is the plan's to say. */
export const budgetRange = { min: 0.001, max: 1024 } as const;

/** What is wrong, by field: `image`, `prompt`, `memoryBudget`, a {@link NumberName}, a LoRA's key. */
export type FieldErrors = Readonly<Record<string, string>>;

/**
 * Everything that keeps the form from being generated, in the order of the page. All sentences come
 * from the contract, which is asked one field at a time so that each field gets its own.
 */
export function findErrors(state: FormState): FieldErrors {
  const errors: Record<string, string> = {};
  if (!state.files.image) {
    const { message, remedy } = new KinoraError('IMAGE_MISSING');
    errors.image = `${message} ${remedy}`;
  }
  const prompt = sentence({ prompt: state.values.prompt });
  if (prompt) errors.prompt = prompt;
  for (const name of numberNames) {
    const wrong = sentence({ prompt: '-', [name]: toNumber(state.values[name]) });
    if (wrong) errors[name] = wrong.replace(name, labels[name]);
  }
  for (const { key, name, scale } of state.files.loras) {
    const wrong = sentence({ prompt: '-', loras: [{ path: name, scale: toNumber(scale) }] });
    if (wrong) errors[key] = wrong.replace('loras.0.scale', 'Scale');
  }
  const budget = toBudgetBytes(state.values.memoryBudget);
  const { min, max } = budgetRange;
  if (budget !== undefined && !(budget >= min * 2 ** 30 && budget <= max * 2 ** 30)) {
    errors.memoryBudget = `GPU memory must be a number from ${min} to ${max} GiB, or empty.`;
  }
  return errors;
}

/** The errors to show now: gaps only after an attempt, wrong numbers at once. */
export function shownErrors(state: FormState): FieldErrors {
  const { image, prompt, ...rest } = findErrors(state);
  if (!state.checked) return rest;
  return { ...(image && { image }), ...(prompt && { prompt }), ...rest };
}

function sentence(input: unknown): string | null {
  try {
    parseParameters(input);
    return null;
  } catch (thrown) {
    const { code, message, remedy } = toKinoraError(thrown);
    // The sentence about a range is its own remedy.
    return code === 'PARAMETER_INVALID' ? message : `${message} ${remedy}`;
  }
}

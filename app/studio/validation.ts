import { KinoraError, toKinoraError } from '../../lib/contract/errors';
import { isRefusedPrompt } from '../../lib/contract/prompt-refusal';
import { parameterRanges, parseParameters } from '../../lib/contract/request';
import { budgetError } from '../shared/device';
import { type FormState, labels, type NumberName, toNumber } from './form-state';

const numberNames = Object.keys(parameterRanges) as NumberName[];

/** Messages by field: `image`, `prompt`, `memoryBudget`, a {@link NumberName}, or the key of a LoRA. */
export type FieldErrors = Readonly<Record<string, string>>;

/**
 * All errors of the form, in the order of the page. The contract validates each field separately, so
 * that every field gets its own message.
 */
export function findErrors(state: FormState): FieldErrors {
  const errors: Record<string, string> = {};
  if (!state.files.image) {
    const { message, remedy } = new KinoraError('IMAGE_MISSING');
    errors.image = `${message} ${remedy}`;
  }
  const prompt = promptError(state.values.prompt);
  if (prompt) errors.prompt = prompt;
  for (const name of numberNames) {
    const message = numberError(name, toNumber(state.values[name]));
    if (message) errors[name] = message;
  }
  for (const { key, name, scale } of state.files.loras) {
    const message = messageFor({ prompt: '-', loras: [{ path: name, scale: toNumber(scale) }] });
    if (message) errors[key] = message.replace('loras.0.scale', 'Scale');
  }
  const budget = budgetError(state.values.memoryBudget);
  if (budget) errors.memoryBudget = budget;
  return errors;
}

/** What is wrong with a number, as a sentence; null where it is valid. */
function numberError(name: NumberName, value: number): string | null {
  return messageFor({ prompt: '-', [name]: value })?.replace(name, labels[name]) ?? null;
}

/** The errors to show: missing fields only after Generate was pressed, what is invalid at once. */
export function shownErrors(state: FormState): FieldErrors {
  const { image, prompt, ...rest } = findErrors(state);
  const missing = state.values.prompt.trim() === '';
  return {
    ...(image && state.checked && { image }),
    ...(prompt && (state.checked || !missing) && { prompt }),
    ...rest,
  };
}

function promptError(prompt: string): string | null {
  if (!isRefusedPrompt(prompt)) return messageFor({ prompt });
  const { message, remedy } = new KinoraError('PROMPT_REFUSED');
  return `${message} ${remedy}`;
}

function messageFor(input: unknown): string | null {
  try {
    parseParameters(input);
    return null;
  } catch (thrown) {
    const { code, message, remedy } = toKinoraError(thrown);
    // A message about a range already says what to do.
    return code === 'PARAMETER_INVALID' ? message : `${message} ${remedy}`;
  }
}

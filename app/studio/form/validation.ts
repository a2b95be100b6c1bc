import {
  isRefusedPrompt,
  KinoraError,
  lastImageSeconds,
  maxPromptLength,
  parameterRanges,
  parseParameters,
  toKinoraError,
} from '../../../lib/contract';
import { budgetError } from '../../shared/device';
import { errorSentences, t } from '../../texts';
import '../../texts/en/form';
import { type FormState, type NumberName, rangeText, toNumber, toParameters } from './form-state';

const numberNames = Object.keys(parameterRanges) as NumberName[];

/** Range of a LoRA's scale. */
const loraScales = { min: 0, max: 4 } as const;

/** Messages by field: `image`, `prompt`, `device`, a {@link NumberName}, or the key of a LoRA. */
export type FieldErrors = Readonly<Record<string, string>>;

/**
 * All errors of the form, in the order of the page. The contract validates each field separately, so
 * that every field gets its own message.
 */
export function findErrors(state: FormState): FieldErrors {
  const errors: Record<string, string> = {};
  if (!state.files.image) errors.image = errorSentences(new KinoraError('IMAGE_MISSING'));
  const prompt = promptError(state.values.prompt);
  if (prompt) errors.prompt = prompt;
  for (const name of numberNames) {
    const value = toNumber(state.values[name]);
    if (refusal({ prompt: '-', [name]: value })) errors[name] = rangeText(name);
  }
  const { last_image_at: second, duration } = toParameters(state);
  const latest = duration ?? lastImageSeconds.max;
  if (
    second !== undefined &&
    (refusal({ prompt: '-', last_image_at: second }) || second > latest)
  ) {
    errors.last_image_at = t('form.lastImageRange', { min: lastImageSeconds.min, max: latest });
  }
  for (const { key, name, scale } of state.files.loras) {
    const loras = [{ path: name, scale: toNumber(scale) }];
    if (refusal({ prompt: '-', loras })) {
      errors[key] = t('form.numberRange', { name: t('form.scale'), ...loraScales });
    }
  }
  const device = budgetError(state.values);
  if (device) errors.device = device;
  return errors;
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
  if (isRefusedPrompt(prompt)) return errorSentences(new KinoraError('PROMPT_REFUSED'));
  const error = refusal({ prompt });
  if (error === null) return null;
  // A sentence about a range already says what to do.
  return error.code === 'PARAMETER_INVALID'
    ? t('form.promptTooLong', { count: maxPromptLength })
    : errorSentences(error);
}

/** Why the contract refuses parameters; null where it does not. */
function refusal(input: unknown): KinoraError | null {
  try {
    parseParameters(input);
    return null;
  } catch (thrown) {
    return toKinoraError(thrown);
  }
}

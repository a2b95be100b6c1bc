import {
  type ModelManifest,
  parameterRanges,
  profilesDiffer,
  type SamplingSwitch,
} from '../../../lib/contract';
import { type FormValues, type ModelDefaults, modelDefaults, toNumber } from './form-state';

/** The levels of speed and quality, the fastest first. */
export const qualities = ['draft', 'standard', 'best'] as const;
export type Quality = (typeof qualities)[number];

type QualityValues = Partial<Pick<FormValues, 'profile' | SamplingSwitch | 'num_inference_steps'>>;

/**
 * What each level sets, by the defaults of the model; everything else in the form stays.
 *
 * @param model absent as long as it is not known
 * @param last the defaults of the model that was shown last, which count until then
 */
export function qualityValues(
  model?: Pick<ModelManifest, 'defaults' | 'profiles'>,
  last?: ModelDefaults | null,
): Readonly<Record<Quality, QualityValues>> {
  const defaults = model ? modelDefaults(model) : (last ?? modelDefaults());
  const usual = toNumber(defaults.num_inference_steps);
  const { min, max } = parameterRanges.num_inference_steps;
  const full = (steps: number): QualityValues => ({
    profile: 'standard',
    cache: undefined,
    guidanceAdapter: undefined,
    num_inference_steps: String(Math.min(Math.max(Math.round(steps), min), max)),
  });
  return {
    // The profile fixes or bounds the steps; where it changes nothing, there are fewer.
    draft:
      !model || profilesDiffer(model.profiles)
        ? { profile: 'ultra-fast', decoder: undefined }
        : full(usual / 3),
    standard: full(usual),
    // A third more; a model of few steps takes at least four more.
    best: full(usual + Math.max(usual / 3, 4)),
  };
}

/** Whether the form has all of these values. */
export function hasValues(values: FormValues, expected: Partial<FormValues>): boolean {
  return Object.entries(expected).every(
    ([name, value]) => values[name as keyof FormValues] === value,
  );
}

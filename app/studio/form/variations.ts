import { maxSeed, type ParametersInput, parameterRanges, resolveSeed } from '../../../lib/contract';
import { rangeText, toNumber } from './form-state';

/** The parameters that a grid varies. */
export const variedNames = ['num_inference_steps', 'guidance_scale', 'flow_shift'] as const;
export type VariedName = (typeof variedNames)[number];

/** Most videos of one grid. */
export const maxGrid = 24;

/** A grid: the changes of each video, or why there is none. */
export interface Grid {
  /** Empty where there are errors, or more than {@link maxGrid} videos. */
  readonly changes: readonly Partial<ParametersInput>[];
  /** How many videos it has. */
  readonly count: number;
  /** Sentences on the parameters that have an invalid value. */
  readonly errors: Partial<Readonly<Record<VariedName, string>>>;
}

/** Changes of videos that differ in nothing but the seed; a random one (−1) is replaced for each. */
export function seedVariations(seed: number, count: number): Partial<ParametersInput>[] {
  return Array.from({ length: count }, (_, index) => ({
    seed: seed >= 0 ? (seed + index) % (maxSeed + 1) : resolveSeed(-1),
  }));
}

/**
 * Every combination of the values.
 *
 * @param lists numbers separated by commas or spaces; a parameter without any is not varied
 * @param seed of all of them; a random one (−1) is replaced once, so that only the values make a difference
 */
export function gridOf(lists: Readonly<Record<VariedName, string>>, seed: number): Grid {
  const errors: Partial<Record<VariedName, string>> = {};
  const varied = variedNames.flatMap((name) => {
    const values = [...new Set(lists[name].split(/[\s,;]+/).filter(Boolean))].map(toNumber);
    if (values.some((value) => !isValid(name, value))) errors[name] = rangeText(name);
    return values.length > 0 ? [{ name, values }] : [];
  });
  const invalid = varied.length === 0 || Object.keys(errors).length > 0;
  const count = invalid ? 0 : varied.reduce((product, { values }) => product * values.length, 1);
  if (count === 0 || count > maxGrid) return { changes: [], count, errors };
  const changes = varied.reduce<Partial<ParametersInput>[]>(
    (soFar, { name, values }) =>
      soFar.flatMap((change) => values.map((value) => ({ ...change, [name]: value }))),
    [{ seed: resolveSeed(seed) }],
  );
  return { changes, count, errors };
}

/** Whether a value is in its range. The schema would bring a large script. */
function isValid(name: VariedName, value: number): boolean {
  const { min, max, step } = parameterRanges[name];
  return value >= min && value <= max && (step < 1 || Number.isInteger(value));
}

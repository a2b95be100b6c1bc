import { maxSeed, type ParametersInput, resolveSeed } from '../../lib/contract/request';
import { toNumber } from './form-state';
import { numberError } from './validation';

/** The parameters that a grid varies. */
export const variedNames = ['num_inference_steps', 'guidance_scale', 'flow_shift'] as const;
export type VariedName = (typeof variedNames)[number];

/** Most videos of one grid. */
export const maxGrid = 24;

/** A grid: the changes of each video, or why there is none. */
export interface Grid {
  readonly changes: readonly Partial<ParametersInput>[];
  /** The first invalid value of each parameter, as a sentence. */
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
  let changes: Partial<ParametersInput>[] = [{ seed: resolveSeed(seed) }];
  for (const name of variedNames) {
    const values = [...new Set(lists[name].split(/[\s,;]+/).filter(Boolean))].map(toNumber);
    const [error] = values.flatMap((value) => numberError(name, value) ?? []);
    if (error) errors[name] = error;
    if (values.length === 0) continue;
    changes = changes.flatMap((change) => values.map((value) => ({ ...change, [name]: value })));
  }
  const varied = variedNames.some((name) => lists[name].trim() !== '');
  return { changes: varied && Object.keys(errors).length === 0 ? changes : [], errors };
}

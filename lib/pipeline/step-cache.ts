import { at, type MagCacheSettings } from '../contract';
import type { DeviceTensor } from '../gpu';
import type { BlockWork, ClipDenoiser } from './model';
import type { Sampling } from './profiles';
import { createScheduler } from './schedulers';

/** Which steps reuse results of earlier ones, and by what rule. */
export type StepCache =
  | { readonly kind: 'none' }
  | { readonly kind: 'magcache'; readonly settings: MagCacheSettings };

/**
 * The steps at which each guidance branch reuses what its blocks added before, by MagCache (Ma et al.,
 * arXiv:2506.09045; `magcache_generate.py` of Zehong-Ma/MagCache). The ratios of the magnitudes of
 * successive residuals are constants of a model, so the pattern depends on the number of steps only.
 *
 * The last step is always computed: what it leaves out nothing corrects.
 *
 * @param settings the model's ratios and limits
 * @returns for the branch under the prompt, then for the other one: whether step i reuses
 */
export function magCacheSkips(
  steps: number,
  { ratios, threshold, mostSkips, computedShare }: MagCacheSettings,
): [conditional: boolean[], unconditional: boolean[]] {
  const branch = (index: 0 | 1): boolean[] => {
    // The list has no entries for the first step, whose residual has no predecessor.
    const own = [1, ...ratios.filter((_, i) => i % 2 === index)];
    let [ratio, skips, error] = [1, 0, 0];
    return Array.from({ length: steps }, (_, step) => {
      // Calls alternate between the branches.
      if (2 * step + index < Math.floor(computedShare * 2 * steps)) return false;
      ratio *= nearest(own, step, steps);
      skips += 1;
      error += Math.abs(1 - ratio);
      const reuses = error < threshold && skips <= mostSkips && step < steps - 1;
      if (!reuses) [ratio, skips, error] = [1, 0, 0];
      return reuses;
    });
  };
  return [branch(0), branch(1)];
}

/** Entry of a list that was measured with another number of steps. */
function nearest(list: readonly number[], step: number, steps: number): number {
  if (steps === 1) return at(list, list.length - 1);
  return at(list, roundHalfToEven((step * (list.length - 1)) / (steps - 1)));
}

/** As NumPy rounds, which upstream uses. */
function roundHalfToEven(value: number): number {
  const down = Math.floor(value);
  if (value - down !== 0.5) return Math.round(value);
  return down % 2 === 0 ? down : down + 1;
}

/**
 * Fills `velocities` at a step, by branch: of both branches, or of the one under the prompt.
 *
 * @param step from 0; to a cache each evaluation of the model is a step
 */
export type VelocityOfStep = (
  step: number,
  timestep: number,
  sample: DeviceTensor<'float32'>,
  velocities: readonly DeviceTensor<'float32'>[],
  signal?: AbortSignal,
) => Promise<void>;

/** The velocities of a clip, and whether they depend on what lies on the device only. */
export interface CachedVelocity {
  readonly velocity: VelocityOfStep;
  /** Whether a new one goes on after a step (from 0) as this one would: the next step reuses nothing. */
  isResumable(step: number): boolean;
}

/**
 * The velocities of a clip, of which a cache computes some and reuses others.
 *
 * @param steps evaluations of the model in the whole schedule
 */
export function cachedVelocity(
  clip: ClipDenoiser,
  cache: StepCache,
  steps: number,
): CachedVelocity {
  if (cache.kind === 'none') {
    return {
      velocity: (_, timestep, sample, velocities, signal) =>
        clip.velocity(timestep, sample, velocities, { signal }),
      isResumable: () => true,
    };
  }
  const skips = magCacheSkips(steps, cache.settings);
  const kept = [false, false];
  const reuses = (branch: number, step: number) =>
    at(skips, branch)[step] === true && kept[branch] === true;
  return {
    async velocity(step, timestep, sample, velocities, signal) {
      const blocks = velocities.map((_, branch): BlockWork => {
        if (reuses(branch, step)) return 'reuse';
        kept[branch] = at(skips, branch)[step + 1] === true;
        return kept[branch] ? 'keep' : 'compute';
      });
      await clip.velocity(timestep, sample, velocities, { blocks, signal });
    },
    isResumable: (step) => ![0, 1].some((branch) => reuses(branch, step + 1)),
  };
}

/** Cost of a pass whose blocks are not run. */
const reusedPass = 0.03;

/** Passes of the denoiser in each step: two with guidance, fewer where a cache reuses some, more with some samplers. */
export function passesOfSteps(sampling: Sampling): number[] {
  const { scheduler, steps, flowShift, cache, guidanceScale, guidedSteps = steps } = sampling;
  const schedule = createScheduler({ ...scheduler, steps, flowShift });
  const evaluations = Array.from({ length: steps }, (_, step) => schedule.step(step).length);
  // Each evaluation of the model is a step to a cache.
  const all = evaluations.reduce((a, b) => a + b, 0);
  const skips = cache?.kind === 'magcache' ? magCacheSkips(all, cache.settings) : null;
  const passOf = (branch: number, evaluation: number) =>
    skips && at(skips, branch)[evaluation] ? reusedPass : 1;
  let evaluation = 0;
  return evaluations.map((count, step) => {
    const branches = guidanceScale > 1 && step < guidedSteps ? [0, 1] : [0];
    let passes = 0;
    for (const end = evaluation + count; evaluation < end; evaluation++) {
      for (const branch of branches) passes += passOf(branch, evaluation);
    }
    return passes;
  });
}

import { at } from '../../contract';
import type { DeviceTensor } from '../../gpu';
import type { BlockWork, ClipDenoiser } from '../model';
import type { StepCache } from '.';
import { magCacheSkips } from './magcache';

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

import { at } from '../../contract';
import type { Backend, DeviceTensor } from '../../gpu';
import type { BlockWork, ClipDenoiser } from '../model';
import { type CacheState, easyCacheLimits, type StepCache } from '.';
import { EasyCache } from './easycache';
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

/** The velocities of a clip, and what they depend on between two steps. */
export interface CachedVelocity {
  readonly velocity: VelocityOfStep;
  /**
   * The state after a step (from 0), with which another one goes on as this one would; null where the next
   * step reuses what lies on the device only.
   */
  save(step: number): Promise<CacheState | null>;
}

/**
 * The velocities of a clip, of which a cache computes some and reuses others.
 *
 * @param steps evaluations of the model in the whole schedule
 * @param state where an earlier one was left; without it a new one computes first
 */
export function cachedVelocity(
  backend: Backend,
  clip: ClipDenoiser,
  cache: StepCache,
  steps: number,
  state: CacheState | null = null,
): CachedVelocity {
  switch (cache.kind) {
    case 'none':
      return {
        velocity: (_, timestep, sample, velocities, signal) =>
          clip.velocity(timestep, sample, velocities, { signal }),
        save: async () => ({ kind: 'none' }),
      };
    case 'magcache': {
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
        save: async (step) =>
          [0, 1].some((b) => reuses(b, step + 1)) ? null : { kind: 'magcache' },
      };
    }
    case 'easycache': {
      const options = { ...easyCacheLimits, steps };
      const easy = new EasyCache(options, state?.kind === 'easycache' ? state : null);
      /** Outputs that arrive with the next read: nothing waits for them alone. */
      let kept: Promise<void> | undefined;
      return {
        async velocity(step, timestep, sample, velocities, signal) {
          await kept;
          const input = await backend.read(sample);
          const reused = easy.reuse(step, input, velocities.length);
          if (reused) {
            for (const [i, target] of velocities.entries()) backend.write(target, at(reused, i));
            return;
          }
          await clip.velocity(timestep, sample, velocities, { signal });
          const staged = velocities.map((target) => backend.stage(target));
          kept = Promise.all(staged).then((outputs) => easy.keep(input, outputs));
          kept.catch(() => undefined);
        },
        async save() {
          await kept;
          return easy.state && { kind: 'easycache', ...easy.state };
        },
      };
    }
  }
}

import { at } from '../../contract';
import type { Backend, DeviceTensor } from '../../gpu';
import type { BlockWork, ClipDenoiser } from '../model';
import { easyCacheLimits, type StepCache } from '.';
import { EasyCache } from './easycache';
import { magCacheSkips } from './magcache';

/** Fills `velocities` at a step (from 0), by branch: of both branches, or of the one under the prompt. */
export type VelocityOfStep = (
  step: number,
  timestep: number,
  sample: DeviceTensor<'float32'>,
  velocities: readonly DeviceTensor<'float32'>[],
  signal?: AbortSignal,
) => Promise<void>;

/**
 * The velocities of a clip, of which a cache computes some and reuses others. What it reuses was computed
 * by this object: after an interruption a new one computes first.
 *
 * @param steps of the whole schedule
 */
export function cachedVelocity(
  backend: Backend,
  clip: ClipDenoiser,
  cache: StepCache,
  steps: number,
): VelocityOfStep {
  switch (cache.kind) {
    case 'none':
      return (_, timestep, sample, velocities, signal) =>
        clip.velocity(timestep, sample, velocities, signal ? { signal } : {});
    case 'magcache': {
      const skips = magCacheSkips(steps, cache.settings);
      const kept = [false, false];
      return async (step, timestep, sample, velocities, signal) => {
        const blocks = velocities.map((_, branch): BlockWork => {
          if (at(skips, branch)[step] && kept[branch]) return 'reuse';
          kept[branch] = at(skips, branch)[step + 1] === true;
          return kept[branch] ? 'keep' : 'compute';
        });
        await clip.velocity(timestep, sample, velocities, { blocks, ...(signal && { signal }) });
      };
    }
    case 'easycache': {
      const easy = new EasyCache({ ...easyCacheLimits, steps });
      return async (step, timestep, sample, velocities, signal) => {
        const input = await backend.read(sample);
        const reused = easy.reuse(step, input, velocities.length);
        if (reused) {
          for (const [i, target] of velocities.entries()) backend.write(target, at(reused, i));
          return;
        }
        await clip.velocity(timestep, sample, velocities, signal ? { signal } : {});
        const outputs: Float32Array[] = [];
        for (const target of velocities) outputs.push(await backend.read(target));
        easy.keep(input, outputs);
      };
    }
  }
}

import { at } from '../../contract';
import type { Sampling } from '../profiles';
import { createScheduler } from '../schedulers';
import { magCacheSkips } from '.';

/** What a pass costs whose blocks are not run. */
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

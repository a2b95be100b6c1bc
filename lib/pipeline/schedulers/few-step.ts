import {
  listedLevels,
  type ScheduleOptions,
  type Scheduler,
  scheduleOf,
  sigmaAt,
} from './scheduler';

/**
 * Multistep consistency sampling, as distilled models of few steps are trained for: predict the clean
 * latents, then add fresh noise for the next level, x_{i+1} = (1 − σ_{i+1})·m_i + σ_{i+1}·ε.
 * Song et al., "Consistency Models", arXiv 2303.01469, algorithm 1; Luo et al., "Latent Consistency
 * Models", arXiv 2310.04378; the schedule of FastVideo's DMD stage (`fastvideo/pipelines/stages/denoising.py`).
 * Stochastic: the noise of step i is a function of the seed and of i.
 *
 * @throws TypeError without timesteps: they belong to the trained weights
 */
export function fewStep(options: ScheduleOptions): Scheduler {
  if (!options.timesteps) throw new TypeError('Sampling in few steps needs a list of timesteps.');
  const levels = listedLevels(options.timesteps);
  return scheduleOf(levels, true, (i) => {
    const noise = sigmaAt(levels, i + 1);
    return { correct: null, predict: { sample: 0, current: 1 - noise, previous: 0, noise } };
  });
}

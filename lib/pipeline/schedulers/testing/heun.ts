import { eulerStep, levelsOf, type Sampler, scheduleOfSteps, sigmaAt } from '../scheduler';

/**
 * Heun's method, which evaluates the model twice in each step but the last: Karras et al., "Elucidating the
 * Design Space of Diffusion-Based Generative Models", arXiv 2206.00364, algorithm 1. With s = σ_i, t = σ_{i+1}:
 *
 *     x' = x_i + (t − s)·v(x_i, s)
 *     x_{i+1} = x_i + (t − s)·(v(x_i, s) + v(x', t))/2
 *
 * The second line as a correction of x' from x_i and both clean predictions, m = x_i − s·v and m' = x' − t·v':
 * t/s·x_i + (t − s)/2·(1/t − 2/s)·m + (s − t)/(2·t)·m'.
 */
export const heun: Sampler = {
  timesteps: 'optional',
  schedule(options) {
    const levels = levelsOf(options);
    return scheduleOfSteps(levels, (i) => {
      const [s, t] = [sigmaAt(levels, i), sigmaAt(levels, i + 1)];
      const first = {
        timestep: 1000 * s,
        sigma: s,
        correct: null,
        predict: eulerStep(levels, i),
      };
      if (t === 0) return [first];
      const second = {
        timestep: 1000 * t,
        sigma: t,
        correct: {
          last: t / s,
          current: (s - t) / (2 * t),
          previous: ((t - s) / 2) * (1 / t - 2 / s),
          beforePrevious: 0,
        },
        predict: { sample: 1, current: 0, previous: 0, noise: 0 },
      };
      return [first, second];
    });
  },
};

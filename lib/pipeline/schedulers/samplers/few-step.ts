import { levelsOf, type Sampler, scheduleOf, sigmaAt } from '../scheduler';

/**
 * Multistep consistency sampling, as distilled models of few steps are trained for: predict the clean
 * latents, then add fresh noise for the next level, x_{i+1} = (1 − σ_{i+1})·m_i + σ_{i+1}·ε.
 * Song et al., "Consistency Models", arXiv 2303.01469, algorithm 1; Luo et al., "Latent Consistency
 * Models", arXiv 2310.04378; the schedule of FastVideo's DMD stage (`fastvideo/pipelines/stages/denoising.py`).
 * Stochastic: the noise of step i is a function of the seed and of i. The timesteps belong to the trained weights.
 */
export const fewStep: Sampler = {
  timesteps: 'required',
  schedule(options) {
    const levels = levelsOf(options);
    return scheduleOf(levels, (i) => {
      const noise = sigmaAt(levels, i + 1);
      return { correct: null, predict: { sample: 0, current: 1 - noise, previous: 0, noise } };
    });
  },
};

import {
  type Coefficients,
  eulerStep,
  levelsOf,
  type NoiseLevels,
  type Sampler,
  scheduleOf,
  sigmaAt,
} from '../scheduler';

/**
 * UniPC of order 2 with x0-prediction and B(h) = e^h − 1 (`bh2`): Zhao et al., "UniPC: A Unified
 * Predictor-Corrector Framework for Fast Sampling of Diffusion Models", arXiv 2302.04867, algorithms 5
 * and 6, as `UniPCMultistepScheduler` of diffusers ≥ 0.37 runs it for flow matching, where α = 1 − σ.
 * Deterministic; the corrector costs no call of the model.
 */
export const unipc: Sampler = {
  timesteps: 'optional',
  schedule(options) {
    const levels = levelsOf(options);
    const steps = levels.timesteps.length;
    return scheduleOf(levels, (i) => {
      // The first step has no history and the last one ends at σ = 0: both are of order 1.
      const order = i > 0 && i < steps - 1 ? 2 : 1;
      return {
        correct: i > 0 ? corrector(levels, i, i > 1 ? 2 : 1) : null,
        predict: predictor(levels, i, order),
      };
    });
  },
};

/** x_{i+1} from x_i; order 1 is the Euler step. */
function predictor(levels: NoiseLevels, i: number, order: 1 | 2): Coefficients['predict'] {
  if (order === 1) return eulerStep(levels, i);
  const sample = sigmaAt(levels, i + 1) / sigmaAt(levels, i);
  const weight = 1 - sample; // −α_t·B of the paper, for α = 1 − σ
  const r = logSnrRatio(levels, i);
  // m_i + ½·(m_{i−1} − m_i)/r
  return { sample, current: weight * (1 - 0.5 / r), previous: (weight * 0.5) / r, noise: 0 };
}

/** x_i again from x_{i−1}, now that m_i is known; of the order that the predictor had. */
function corrector(
  levels: NoiseLevels,
  i: number,
  order: 1 | 2,
): NonNullable<Coefficients['correct']> {
  const here = sigmaAt(levels, i);
  const before = sigmaAt(levels, i - 1);
  const last = here / before;
  const weight = 1 - last;
  if (order === 1) {
    return { last, current: weight * 0.5, previous: weight * 0.5, beforePrevious: 0 };
  }
  const r = logSnrRatio(levels, i - 1);
  const h = lambda(here) - lambda(before);
  const b = -weight / (1 - here); // expm1(−h)
  const a = b / -h - 1;
  const b1 = a / b;
  const b2 = (2 * (a / -h - 0.5)) / b;
  const rho0 = (b1 - b2) / (1 - r);
  const rho1 = b1 - rho0;
  // m_{i−1} + ρ0·(m_{i−2} − m_{i−1})/r + ρ1·(m_i − m_{i−1})
  return {
    last,
    current: weight * rho1,
    previous: weight * (1 - rho1 - rho0 / r),
    beforePrevious: (weight * rho0) / r,
  };
}

/** r = (λ_{i−1} − λ_i) / (λ_{i+1} − λ_i): negative. */
function logSnrRatio(levels: NoiseLevels, i: number): number {
  const here = lambda(sigmaAt(levels, i));
  return (lambda(sigmaAt(levels, i - 1)) - here) / (lambda(sigmaAt(levels, i + 1)) - here);
}

/** λ = ln(α/σ). */
function lambda(sigma: number): number {
  return Math.log((1 - sigma) / sigma);
}

import type { SchedulerKind } from '../../contract';
import {
  listedLevels,
  type NoiseLevels,
  type ScheduleOptions,
  type Scheduler,
  type StepCoefficients,
  scheduleOf,
  shiftedLevels,
  sigmaAt,
} from './scheduler';

/** Every sampler, by the name that a profile uses. */
const schedulers: Readonly<Record<SchedulerKind, (options: ScheduleOptions) => Scheduler>> = {
  unipc,
  euler,
  'few-step': fewStep,
};

/**
 * Makes a schedule.
 *
 * @throws RangeError when steps, flow shift or timesteps are out of range
 */
export function createScheduler({
  kind,
  ...options
}: ScheduleOptions & { readonly kind: SchedulerKind }): Scheduler {
  const { steps, flowShift, timesteps } = options;
  if (!Number.isInteger(steps) || steps < 1) throw new RangeError('steps must be 1 or more.');
  if (!(flowShift > 0 && flowShift < Number.POSITIVE_INFINITY)) {
    throw new RangeError('flowShift must be above 0.');
  }
  for (const [i, t] of (timesteps ?? []).entries()) {
    const before = timesteps?.[i - 1] ?? Number.POSITIVE_INFINITY;
    if (!(t > 0 && t <= 1000 && t < before)) {
      throw new RangeError('timesteps must fall, above 0 and at most 1000.');
    }
  }
  return schedulers[kind](options);
}

/**
 * UniPC of order 2 with x0-prediction and B(h) = e^h − 1 (`bh2`): Zhao et al., "UniPC: A Unified
 * Predictor-Corrector Framework for Fast Sampling of Diffusion Models", arXiv 2302.04867, algorithms 5
 * and 6, as `UniPCMultistepScheduler` of diffusers ≥ 0.37 runs it for flow matching, where α = 1 − σ.
 * Deterministic; the corrector costs no call of the model.
 */
function unipc(options: ScheduleOptions): Scheduler {
  const levels = shiftedLevels(options);
  const { steps } = options;
  return scheduleOf(levels, false, (i) => {
    // The first step has no history and the last one ends at σ = 0: both are of order 1.
    const order = i > 0 && i < steps - 1 ? 2 : 1;
    return {
      correct: i > 0 ? corrector(levels, i, i > 1 ? 2 : 1) : null,
      predict: predictor(levels, i, order),
    };
  });
}

/** x_{i+1} from x_i; order 1 is the Euler step. */
function predictor(levels: NoiseLevels, i: number, order: 1 | 2): StepCoefficients['predict'] {
  const sample = sigmaAt(levels, i + 1) / sigmaAt(levels, i);
  const weight = 1 - sample; // −α_t·B of the paper, for α = 1 − σ
  if (order === 1) return { sample, current: weight, previous: 0, noise: 0 };
  const r = logSnrRatio(levels, i);
  // m_i + ½·(m_{i−1} − m_i)/r
  return { sample, current: weight * (1 - 0.5 / r), previous: (weight * 0.5) / r, noise: 0 };
}

/** x_i again from x_{i−1}, now that m_i is known; of the order that the predictor had. */
function corrector(
  levels: NoiseLevels,
  i: number,
  order: 1 | 2,
): NonNullable<StepCoefficients['correct']> {
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

/**
 * Euler steps of the flow's ODE, x ← x + (σ_{i+1} − σ_i)·v: `FlowMatchEulerDiscreteScheduler` of
 * diffusers; Lipman et al., "Flow Matching for Generative Modeling", arXiv 2210.02747. Written with the
 * clean prediction m = x − σ·v it is UniPC's predictor of order 1. Deterministic.
 */
function euler(options: ScheduleOptions): Scheduler {
  const levels = options.timesteps ? listedLevels(options.timesteps) : shiftedLevels(options);
  return scheduleOf(levels, false, (i) => ({ correct: null, predict: predictor(levels, i, 1) }));
}

/**
 * Multistep consistency sampling, as distilled models of few steps are trained for: predict the clean
 * latents, then add fresh noise for the next level, x_{i+1} = (1 − σ_{i+1})·m_i + σ_{i+1}·ε.
 * Song et al., "Consistency Models", arXiv 2303.01469, algorithm 1; Luo et al., "Latent Consistency
 * Models", arXiv 2310.04378; the schedule of FastVideo's DMD stage (`fastvideo/pipelines/stages/denoising.py`).
 * Stochastic: the noise of step i is a function of the seed and of i.
 *
 * @throws TypeError without timesteps: they belong to the trained weights
 */
function fewStep(options: ScheduleOptions): Scheduler {
  if (!options.timesteps) throw new TypeError('Sampling in few steps needs a list of timesteps.');
  const levels = listedLevels(options.timesteps);
  return scheduleOf(levels, true, (i) => {
    const noise = sigmaAt(levels, i + 1);
    return { correct: null, predict: { sample: 0, current: 1 - noise, previous: 0, noise } };
  });
}

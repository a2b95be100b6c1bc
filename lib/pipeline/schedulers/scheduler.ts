/**
 * Sampling of a flow-matching model: UniPC (Zhao et al. 2023; `bh2`, order 2, x0-prediction) and Euler,
 * as diffusers ≥ 0.37 runs them. With α = 1 − σ every update is a linear combination of a few tensors,
 * so a step is given by numbers alone and the tensors can stay on the GPU.
 */

export type SchedulerKind = 'unipc' | 'euler';

/** What a schedule depends on. */
export interface SchedulerOptions {
  readonly kind: SchedulerKind;
  /** 1 or more. */
  readonly steps: number;
  /** Above 0; larger values spend more steps on the coarse structure. */
  readonly flowShift: number;
}

/**
 * The numbers of one step. With v the model's velocity for x_i at noise level σ_i:
 *
 * 1. `m_i = x_i − sigma · v` is the prediction of the clean latent;
 * 2. where `correct` is given, x_i is replaced by
 *    `last·x_last + current·m_i + previous·m_{i−1} + beforePrevious·m_{i−2}`;
 * 3. `x_{i+1} = predict.sample·x_i + predict.current·m_i + predict.previous·m_{i−1}`.
 *
 * x_last is the x_i that step 3 of the step before used, so after its own correction.
 */
export interface StepCoefficients {
  readonly sigma: number;
  readonly correct: null | {
    readonly last: number;
    readonly current: number;
    readonly previous: number;
    readonly beforePrevious: number;
  };
  readonly predict: {
    readonly sample: number;
    readonly current: number;
    readonly previous: number;
  };
}

export interface Scheduler {
  readonly steps: number;
  /** Noise levels, steps + 1 of them, falling to 0; rounded to f32 as in diffusers. */
  readonly sigmas: Float64Array;
  /** What the model is told: ⌊1000·σ⌋ for each step. */
  readonly timesteps: readonly number[];
  /** @param i 0 … steps − 1 */
  step(i: number): StepCoefficients;
}

/** Timesteps in training. */
const trainTimesteps = 1000;

/**
 * Makes a schedule.
 *
 * @throws RangeError when steps or flow shift are out of range
 */
export function createScheduler({ kind, steps, flowShift }: SchedulerOptions): Scheduler {
  if (!Number.isInteger(steps) || steps < 1) throw new RangeError('steps must be 1 or more.');
  if (!(flowShift > 0 && flowShift < Number.POSITIVE_INFINITY)) {
    throw new RangeError('flowShift must be above 0.');
  }
  const { sigmas, timesteps } = flowSigmas(steps, flowShift);
  const coefficients = Array.from({ length: steps }, (_, i): StepCoefficients => {
    // The first step has no history and the last one ends at σ = 0: both are of order 1.
    const order = kind === 'unipc' && i > 0 && i < steps - 1 ? 2 : 1;
    const correctorOrder = i > 1 ? 2 : 1;
    return {
      sigma: at(sigmas, i),
      correct: kind === 'unipc' && i > 0 ? corrector(sigmas, i, correctorOrder) : null,
      predict: predictor(sigmas, i, order),
    };
  });
  return {
    steps,
    sigmas,
    timesteps,
    step(i) {
      const step = coefficients[i];
      if (!step) throw new RangeError(`There is no step ${i} in ${steps}.`);
      return step;
    },
  };
}

/**
 * The sigmas of diffusers ≥ 0.37: u from 1 to 1/1000 in N+1 points without the last one, shifted by
 * s·u / (1 + (s−1)·u), and 0 at the end.
 */
function flowSigmas(steps: number, shift: number): { sigmas: Float64Array; timesteps: number[] } {
  const sigmas = new Float64Array(steps + 1);
  const timesteps: number[] = [];
  const spacing = (1 / trainTimesteps - 1) / steps;
  for (let i = 0; i < steps; i++) {
    const u = 1 + i * spacing;
    let sigma = (shift * u) / (1 + (shift - 1) * u);
    // At exactly 1 the half log-SNR would be −∞.
    if (i === 0 && Math.abs(sigma - 1) < 1e-6) sigma -= 1e-6;
    timesteps.push(Math.trunc(sigma * trainTimesteps));
    sigmas[i] = Math.fround(sigma);
  }
  return { sigmas, timesteps };
}

/** x_{i+1} from x_i; order 1 is the Euler step. */
function predictor(sigmas: Float64Array, i: number, order: number): StepCoefficients['predict'] {
  const sample = at(sigmas, i + 1) / at(sigmas, i);
  const weight = 1 - sample; // −α_t·B of the paper, for α = 1 − σ
  if (order === 1) return { sample, current: weight, previous: 0 };
  const r = logSnrRatio(sigmas, i);
  // m_i + ½·(m_{i−1} − m_i)/r
  return { sample, current: weight * (1 - 0.5 / r), previous: (weight * 0.5) / r };
}

/** x_i again from x_{i−1}, now that m_i is known; of the order that the predictor had. */
function corrector(
  sigmas: Float64Array,
  i: number,
  order: number,
): NonNullable<StepCoefficients['correct']> {
  const last = at(sigmas, i) / at(sigmas, i - 1);
  const weight = 1 - last;
  if (order === 1) {
    return { last, current: weight * 0.5, previous: weight * 0.5, beforePrevious: 0 };
  }
  const r = logSnrRatio(sigmas, i - 1);
  const h = lambda(at(sigmas, i)) - lambda(at(sigmas, i - 1));
  const b = -weight / (1 - at(sigmas, i)); // expm1(−h)
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
function logSnrRatio(sigmas: Float64Array, i: number): number {
  const here = lambda(at(sigmas, i));
  return (lambda(at(sigmas, i - 1)) - here) / (lambda(at(sigmas, i + 1)) - here);
}

/** λ = ln(α/σ). */
function lambda(sigma: number): number {
  return Math.log((1 - sigma) / sigma);
}

function at(values: Float64Array, i: number): number {
  const value = values[i];
  if (value === undefined) throw new RangeError(`There is no sigma ${i}.`);
  return value;
}

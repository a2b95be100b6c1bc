/*
 * What samplers of a flow-matching model have in common. With α = 1 − σ every update is a linear
 * combination of a few tensors, so a step is given by numbers alone and the tensors stay on the GPU.
 */

/**
 * The numbers of one step. With v the model's velocity for x_i at noise level σ_i:
 *
 * 1. `m_i = x_i − sigma · v` is the prediction of the clean latents;
 * 2. where `correct` is given, x_i is replaced by
 *    `last·x_last + current·m_i + previous·m_{i−1} + beforePrevious·m_{i−2}`;
 * 3. `x_{i+1} = sample·x_i + current·m_i + previous·m_{i−1} + noise·ε`, the numbers of `predict`.
 *
 * x_last is the x_i that step 3 of the step before used, so after its own correction; ε is fresh noise.
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
    /** Not 0 in stochastic samplers only. */
    readonly noise: number;
  };
}

/** A schedule: which noise levels, and how to go from one to the next. */
export interface Scheduler {
  readonly steps: number;
  /** Noise levels, steps + 1 of them, falling to 0; rounded to f32 as in diffusers. */
  readonly sigmas: Float64Array;
  /** The model's timestep input of each step, 0 to 1000. */
  readonly timesteps: readonly number[];
  /** Whether steps take fresh noise. */
  readonly stochastic: boolean;
  /** @param i 0 … steps − 1 */
  step(i: number): StepCoefficients;
}

/** What a schedule depends on. */
export interface ScheduleOptions {
  /** 1 or more. */
  readonly steps: number;
  /** Above 0; larger values spend more steps on the coarse structure. */
  readonly flowShift: number;
  /** Falling, above 0 and at most 1000; fixes the steps and makes the flow shift meaningless. */
  readonly timesteps?: readonly number[] | undefined;
}

/** Noise levels and the timesteps that stand for them in the model's input. */
export type NoiseLevels = Pick<Scheduler, 'sigmas' | 'timesteps'>;

/** Timesteps in training. */
const trainTimesteps = 1000;

/**
 * Levels of a flow schedule, as `UniPCMultistepScheduler.set_timesteps` of diffusers ≥ 0.37 has them
 * (`use_flow_sigmas`): u from 1 to 1/1000 in N+1 points without the last one, shifted by
 * s·u / (1 + (s−1)·u), and 0 at the end. The timestep is ⌊1000·σ⌋.
 */
export function shiftedLevels({ steps, flowShift: shift }: ScheduleOptions): NoiseLevels {
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

/** Levels at given timesteps: σ = t / 1000, and 0 at the end. */
export function listedLevels(timesteps: readonly number[]): NoiseLevels {
  const sigmas = timesteps.map((t) => Math.fround(t / trainTimesteps));
  return { sigmas: Float64Array.from([...sigmas, 0]), timesteps };
}

/** A schedule from its levels and the numbers of each step. */
export function scheduleOf(
  levels: NoiseLevels,
  stochastic: boolean,
  coefficients: (i: number) => Omit<StepCoefficients, 'sigma'>,
): Scheduler {
  const { timesteps } = levels;
  const steps = timesteps.map((_, i) => ({ sigma: sigmaAt(levels, i), ...coefficients(i) }));
  return {
    ...levels,
    steps: timesteps.length,
    stochastic,
    step(i) {
      const step = steps[i];
      if (!step) throw new RangeError(`There is no step ${i} in ${steps.length}.`);
      return step;
    },
  };
}

/** @throws RangeError */
export function sigmaAt({ sigmas }: NoiseLevels, i: number): number {
  const value = sigmas[i];
  if (value === undefined) throw new RangeError(`There is no sigma ${i}.`);
  return value;
}

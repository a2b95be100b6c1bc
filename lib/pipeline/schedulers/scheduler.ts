import { at } from '../../contract';

/*
 * What samplers of a flow-matching model have in common. With α = 1 − σ every update is a linear
 * combination of a few tensors, so a step is given by numbers alone and the tensors stay on the GPU.
 */

/**
 * The numbers of one evaluation of the model, the i-th of a schedule. With v its velocity for x_i at noise level σ_i:
 *
 * 1. `m_i = x_i − sigma · v` is the prediction of the clean latents;
 * 2. where `correct` is given, x_i is replaced by
 *    `last·x_last + current·m_i + previous·m_{i−1} + beforePrevious·m_{i−2}`;
 * 3. `x_{i+1} = sample·x_i + current·m_i + previous·m_{i−1} + noise·ε`, the numbers of `predict`.
 *
 * x_last is the x_i that item 3 of the evaluation before used, so after its own correction; ε is fresh noise.
 */
export interface Coefficients {
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

/** One evaluation of the model, and what its velocity does to the latents. */
export interface Evaluation extends Coefficients {
  /** The model's timestep input, 0 to 1000. */
  readonly timestep: number;
}

/** A schedule: which noise levels, and how to go from one to the next. */
export interface Scheduler {
  readonly steps: number;
  /** Noise levels, steps + 1 of them, falling to 0; rounded to f32 as in diffusers. */
  readonly sigmas: Float64Array;
  /** Of the first evaluation of each step. */
  readonly timesteps: readonly number[];
  /** Whether steps take fresh noise: of a step, all of its evaluations the same. */
  readonly stochastic: boolean;
  /** Most evaluations in a step. */
  readonly evaluations: number;
  /**
   * The evaluations of a step, in order: one or more.
   *
   * @param i 0 … steps − 1
   */
  step(i: number): readonly Evaluation[];
}

/** A way to sample, as a profile names it. */
export interface Sampler {
  /** Whether it is run at a list of timesteps; without one they follow from steps and flow shift. */
  readonly timesteps: 'optional' | 'required';
  schedule(options: ScheduleOptions): Scheduler;
}

/** Inputs of a schedule. */
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
function shiftedLevels({ steps, flowShift: shift }: ScheduleOptions): NoiseLevels {
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
function listedLevels(timesteps: readonly number[]): NoiseLevels {
  const sigmas = timesteps.map((t) => Math.fround(t / trainTimesteps));
  return { sigmas: Float64Array.from([...sigmas, 0]), timesteps };
}

/** Levels at the listed timesteps, or those of a flow schedule without a list. */
export function levelsOf(options: ScheduleOptions): NoiseLevels {
  return options.timesteps ? listedLevels(options.timesteps) : shiftedLevels(options);
}

/** A schedule from its levels and the numbers of each step, which evaluates the model once. */
export function scheduleOf(
  levels: NoiseLevels,
  coefficients: (i: number) => Omit<Coefficients, 'sigma'>,
): Scheduler {
  return scheduleOfSteps(levels, (i) => [
    { timestep: at(levels.timesteps, i), sigma: sigmaAt(levels, i), ...coefficients(i) },
  ]);
}

/** A schedule from its levels and the evaluations of each step. */
export function scheduleOfSteps(
  levels: NoiseLevels,
  evaluationsOf: (i: number) => readonly Evaluation[],
): Scheduler {
  const steps = levels.timesteps.map((_, i) => evaluationsOf(i));
  return {
    ...levels,
    steps: steps.length,
    stochastic: steps.flat().some(({ predict }) => predict.noise !== 0),
    evaluations: Math.max(...steps.map(({ length }) => length)),
    step(i) {
      const step = steps[i];
      if (!step) throw new RangeError(`There is no step ${i} in ${steps.length}.`);
      return step;
    },
  };
}

/**
 * The step of Euler from σ_i to σ_{i+1}, x_{i+1} = x_i + (σ_{i+1} − σ_i)·v, written with the clean prediction
 * m_i = x_i − σ_i·v.
 */
export function eulerStep(levels: NoiseLevels, i: number): Coefficients['predict'] {
  const sample = sigmaAt(levels, i + 1) / sigmaAt(levels, i);
  return { sample, current: 1 - sample, previous: 0, noise: 0 };
}

/** @throws RangeError */
export function sigmaAt({ sigmas }: NoiseLevels, i: number): number {
  const value = sigmas[i];
  if (value === undefined) throw new RangeError(`There is no sigma ${i}.`);
  return value;
}

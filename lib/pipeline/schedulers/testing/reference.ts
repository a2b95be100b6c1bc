/** Sampling on the CPU: the plain reference for what the solver does on the device. */
import { at } from '../../../contract';
import type { Evaluation, Scheduler } from '../scheduler';

/** Where a sampling on the CPU stands. */
export interface SchedulerState {
  readonly scheduler: Scheduler;
  /** The next step, 0 … steps. */
  index: number;
  /** x_i: what the model sees next, or the result. */
  sample: Float32Array;
  /** x_{i−1} after its correction. */
  last: Float32Array | null;
  /** m_{i−1} and m_{i−2}. */
  previous: Float32Array | null;
  beforePrevious: Float32Array | null;
}

/** The start of a sampling on the CPU. @param noise x_0; not changed */
export function startScheduler(scheduler: Scheduler, noise: Float32Array): SchedulerState {
  return {
    scheduler,
    index: 0,
    sample: noise,
    last: null,
    previous: null,
    beforePrevious: null,
  };
}

/**
 * One step of one evaluation on the CPU, as plainly as it can be written.
 *
 * @param velocity the model's output for `state.sample` at `timesteps[state.index]`
 * @returns the next sample, which is also in the state
 * @throws TypeError when lengths differ
 */
export function runSchedulerStep(state: SchedulerState, velocity: Float32Array): Float32Array {
  return applyOnCpu(state, at(state.scheduler.step(state.index++), 0), velocity);
}

/** What an evaluation does to the latents, on the CPU. */
export function applyOnCpu(
  state: SchedulerState,
  { sigma, correct, predict }: Evaluation,
  velocity: Float32Array,
): Float32Array {
  const x = state.sample;
  if (velocity.length !== x.length) {
    throw new TypeError(`The velocity has ${velocity.length} values, the sample ${x.length}.`);
  }
  const clean = new Float32Array(x.length);
  for (let k = 0; k < x.length; k++) clean[k] = (x[k] ?? 0) - sigma * (velocity[k] ?? 0);

  const { last, previous, beforePrevious } = state;
  const corrected = correct ? new Float32Array(x.length) : x;
  const next = new Float32Array(x.length);
  for (let k = 0; k < x.length; k++) {
    const m1 = previous?.[k] ?? 0;
    if (correct) {
      corrected[k] =
        correct.last * (last?.[k] ?? 0) +
        correct.current * (clean[k] ?? 0) +
        correct.previous * m1 +
        correct.beforePrevious * (beforePrevious?.[k] ?? 0);
    }
    next[k] =
      predict.sample * (corrected[k] ?? 0) +
      predict.current * (clean[k] ?? 0) +
      predict.previous * m1;
  }
  state.beforePrevious = previous;
  state.previous = clean;
  state.last = corrected;
  state.sample = next;
  return next;
}

import {
  listedLevels,
  type ScheduleOptions,
  type Scheduler,
  scheduleOf,
  shiftedLevels,
} from './scheduler';
import { predictor } from './unipc';

/**
 * Euler steps of the flow's ODE, x ← x + (σ_{i+1} − σ_i)·v: `FlowMatchEulerDiscreteScheduler` of
 * diffusers; Lipman et al., "Flow Matching for Generative Modeling", arXiv 2210.02747. Written with the
 * clean prediction m = x − σ·v it is UniPC's predictor of order 1. Deterministic.
 */
export function euler(options: ScheduleOptions): Scheduler {
  const levels = options.timesteps ? listedLevels(options.timesteps) : shiftedLevels(options);
  return scheduleOf(levels, false, (i) => ({ correct: null, predict: predictor(levels, i, 1) }));
}

import type { SchedulerKind } from '../../contract';
import { euler } from './euler';
import { fewStep } from './few-step';
import type { ScheduleOptions, Scheduler } from './scheduler';
import { unipc } from './unipc';

export type { ScheduleOptions, Scheduler, StepCoefficients } from './scheduler';
export { Solver, type SolverState } from './solver';

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

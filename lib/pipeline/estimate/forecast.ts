import type { Rates, UsualRate } from './rates';
import { RunTracker } from './tracker';
import type { Cost, Stage } from './work';

/** How long a run will take, before it begins. */
export interface TimeForecast {
  readonly seconds: number;
  /** Whether the rate of the denoiser was measured on this device; else it is what is usual. */
  readonly measured: boolean;
}

/**
 * Adds up all stages of a run.
 *
 * @param decodeFactor work of the decode as a multiple of that of whole frames
 */
export function forecastTime(
  stages: readonly Stage[],
  usual: Readonly<Record<Cost, UsualRate>>,
  remembered: Rates,
  decodeFactor = 1,
): TimeForecast {
  const tracker = new RunTracker(stages, usual, remembered, () => 0);
  tracker.decodeFactor = decodeFactor;
  const started = new Set<Cost>();
  const seconds = stages.reduce((sum, _, index) => sum + tracker.secondsOf(index, started), 0);
  return { seconds, measured: tracker.paceOf('denoise').known };
}

import { formatMemory, formatSeconds } from '../../lib/contract/format';
import type { Forecast, MemoryForecast } from '../../workers/forecast/forecast';

const secondsOfDay = 24 * 3600;

/** `about 3 min 20 s`; `more than a day` where the exact number helps nobody. */
export function durationText({ seconds, measured }: Forecast['time']): string {
  if (seconds > secondsOfDay) return 'more than a day';
  const text = formatSeconds(rounded(seconds)).replace(/ 00 (s|min)$/, '');
  return measured ? `about ${text}` : `roughly ${text}`;
}

/** To a precision that a forecast has: seconds, then tens of seconds, then minutes, then quarters of an hour. */
function rounded(seconds: number): number {
  const unit = seconds < 60 ? 1 : seconds < 600 ? 10 : seconds < 7200 ? 60 : 900;
  return Math.max(1, Math.round(seconds / unit)) * unit;
}

/** The memory of a request in a few words, and what else there is to know of it. */
export function memoryText({ full, least, planned }: MemoryForecast): {
  readonly text: string;
  readonly title: string;
} {
  if (planned === null) {
    return {
      text: `needs ${formatMemory(least)}`,
      title: 'That is more than the memory limit under Advanced.',
    };
  }
  const title =
    planned < full
      ? `Without the memory limit it would take ${formatMemory(full)}, and be faster.`
      : `It works from ${formatMemory(least)} on, with parts of the model read from disk.`;
  return { text: formatMemory(planned), title: least < planned || planned < full ? title : '' };
}

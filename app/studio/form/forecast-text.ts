import { formatMemory, timeParts } from '../../../lib/contract/format';
import type { Forecast, MemoryForecast } from '../../../lib/engine/forecast';
import { t } from '../../texts';
import '../../texts/en/form';
import { formatTime } from '../../texts/format';

const secondsOfDay = 24 * 3600;

/** `about 3 min 20 s`; `more than a day` where the exact number helps nobody. */
export function durationText({ seconds, measured }: Forecast['time']): string {
  if (seconds > secondsOfDay) return t('form.moreThanDay');
  const time = withoutZeros(rounded(seconds));
  return measured ? t('form.about', { time }) : t('form.roughly', { time });
}

/** The time without `00 s` or `00 min` at its end. */
function withoutZeros(seconds: number): string {
  const [unit, first, second] = timeParts(seconds);
  if (unit === 's' || second !== '00') return formatTime(seconds);
  return unit === 'min'
    ? t('form.wholeMinutes', { minutes: first })
    : t('form.wholeHours', { hours: first });
}

/** To a precision that a forecast has: seconds, then tens of seconds, then minutes, then quarters of an hour. */
function rounded(seconds: number): number {
  const unit = seconds < 60 ? 1 : seconds < 600 ? 10 : seconds < 7200 ? 60 : 900;
  return Math.max(1, Math.round(seconds / unit)) * unit;
}

/** The memory of a request in a few words, where it is short; null where all of the model stays in it. */
export function memoryText({ full, least, planned }: MemoryForecast): {
  readonly text: string;
  readonly title: string;
} | null {
  if (planned === null) {
    return {
      text: t('form.needsMemory', { amount: formatMemory(least) }),
      title: t('form.needsMemoryHint'),
    };
  }
  if (planned >= full) return null;
  const [amount, total] = [formatMemory(planned), formatMemory(full)];
  return {
    text: t('form.memoryOf', { amount, total }),
    title: t('form.memoryLimited', { amount: total }),
  };
}

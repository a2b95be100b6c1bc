/** Seconds of one execution, over several measurements. */
export interface Timing {
  readonly median: number;
  readonly least: number;
}

export interface TimeOptions {
  /** Seconds that one measurement takes at least. */
  readonly atLeast?: number;
  readonly rounds?: number;
  /** Whether the work was executed before: the first execution also compiles. */
  readonly warm?: boolean;
  /** Milliseconds; for tests. */
  readonly now?: () => number;
}

/** Executions of one measurement. */
const mostTimes = 1024;

/** Seconds beside which a wait is nothing. */
const long = 0.25;

/**
 * Times work on a device. Waiting for its end takes milliseconds itself, so that n and 2n executions are timed
 * and the difference counts, unless one execution is long.
 *
 * @param run executes the work so many times and resolves when it is done
 */
export async function timeWork(
  run: (times: number) => Promise<void>,
  { atLeast = 0.05, rounds = 5, warm = false, now = () => performance.now() }: TimeOptions = {},
): Promise<Timing> {
  const secondsOf = async (times: number) => {
    const start = now();
    await run(times);
    return (now() - start) / 1000;
  };
  if (!warm) await secondsOf(1);
  let times = 1;
  let once = await secondsOf(1);
  while (once < atLeast && times < mostTimes) {
    times = Math.min(mostTimes, Math.max(2 * times, Math.ceil((times * atLeast) / once)));
    once = await secondsOf(times);
  }
  const samples: number[] = once < long ? [] : [once];
  while (samples.length < rounds) {
    if (once >= long) {
      samples.push(await secondsOf(1));
      continue;
    }
    const [single, double] = [await secondsOf(times), await secondsOf(2 * times)];
    samples.push(double > single ? (double - single) / times : double / (2 * times));
  }
  samples.sort((a, b) => a - b);
  return {
    median: samples[Math.floor(rounds / 2)] ?? Number.NaN,
    least: samples[0] ?? Number.NaN,
  };
}

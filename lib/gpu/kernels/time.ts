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
  options: TimeOptions = {},
): Promise<Timing> {
  const [timing] = await timeInTurns([run], options);
  return timing as Timing;
}

/** As {@link timeWork} for several works that are compared: in turns, so that what disturbs one disturbs all. */
export async function timeInTurns(
  runs: readonly ((times: number) => Promise<void>)[],
  { atLeast = 0.05, rounds = 5, warm = false, now = () => performance.now() }: TimeOptions = {},
): Promise<Timing[]> {
  const works = runs.map((run) => ({ run, times: 1, once: 0, samples: [] as number[] }));
  type Work = (typeof works)[number];
  const secondsOf = async ({ run }: Work, times: number) => {
    const start = now();
    await run(times);
    return (now() - start) / 1000;
  };
  for (const work of works) {
    if (!warm) await secondsOf(work, 1);
    work.once = await secondsOf(work, 1);
    while (work.once < atLeast && work.times < mostTimes) {
      const needed = Math.ceil((work.times * atLeast) / work.once);
      work.times = Math.min(mostTimes, Math.max(2 * work.times, needed));
      work.once = await secondsOf(work, work.times);
    }
    if (work.once >= long) work.samples.push(work.once);
  }
  for (let round = 0; round < rounds; round++) {
    for (const work of round % 2 ? works.toReversed() : works) {
      const { times, once, samples } = work;
      if (samples.length >= rounds) continue;
      if (once >= long) samples.push(await secondsOf(work, 1));
      else samples.push(await difference(work, times));
    }
  }
  return works.map(({ samples }) => {
    const sorted = samples.toSorted((a, b) => a - b);
    return {
      median: sorted[Math.floor(rounds / 2)] ?? Number.NaN,
      least: sorted[0] ?? Number.NaN,
    };
  });

  async function difference(work: Work, times: number): Promise<number> {
    const [single, double] = [await secondsOf(work, times), await secondsOf(work, 2 * times)];
    return double > single ? (double - single) / times : double / (2 * times);
  }
}

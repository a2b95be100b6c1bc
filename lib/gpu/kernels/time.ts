/** Seconds of one execution, over several measurements. */
export interface Timing {
  readonly median: number;
  readonly least: number;
}

export interface TimeOptions {
  /** Seconds that one measurement takes at least: the wait for its end takes milliseconds, which count. */
  readonly atLeast?: number;
  readonly rounds?: number;
  /** Whether the work was executed before: the first execution also compiles. */
  readonly warm?: boolean;
  /** Takes the least seconds of each work after a round; where it is true, that round was the last. */
  readonly decided?: (least: readonly number[]) => boolean;
  /** Milliseconds; for tests. */
  readonly now?: () => number;
}

/** Executions of one measurement. */
const mostTimes = 4096;

/**
 * Times work on a device: so many executions that a measurement is long. Whatever disturbs it makes it longer, so that
 * the least one is the truest; the difference of two measurements would have the errors of both, and come out too small.
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
  options: TimeOptions = {},
): Promise<Timing[]> {
  const { atLeast = 0.1, rounds = 5, warm = false, now = () => performance.now() } = options;
  const works = runs.map((run) => ({ run, times: 1, samples: [] as number[] }));
  type Work = (typeof works)[number];
  const measure = async ({ run, times, samples }: Work) => {
    const start = now();
    await run(times);
    const seconds = (now() - start) / 1000;
    samples.push(seconds / times);
    return seconds;
  };
  for (const work of works) {
    if (!warm) await measure(work);
    work.samples.length = 0;
    for (let seconds = await measure(work); seconds < atLeast && work.times < mostTimes; ) {
      const needed = Math.ceil((work.times * atLeast) / seconds);
      work.times = Math.min(mostTimes, Math.max(2 * work.times, needed));
      work.samples.length = 0;
      seconds = await measure(work);
    }
  }
  const decided = () => options.decided?.(works.map(({ samples }) => Math.min(...samples)));
  for (let round = 1; round < rounds && !decided(); round++) {
    for (const work of round % 2 ? works.toReversed() : works) await measure(work);
  }
  return works.map(({ samples }) => {
    const sorted = samples.toSorted((a, b) => a - b);
    return {
      median: sorted[Math.floor(sorted.length / 2)] ?? Number.NaN,
      least: sorted[0] ?? Number.NaN,
    };
  });
}

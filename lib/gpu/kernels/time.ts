/** Seconds of one execution, over several measurements, without the wait for their ends. */
export interface Timing {
  readonly median: number;
  /**
   * What disturbs a device makes its work longer, so that this is the least of them. Where reports are late, their own
   * variation makes a measurement shorter as well, and it is the median.
   */
  readonly truest: number;
}

/** Milliseconds. */
export interface Clock {
  now(): number;
  wait(milliseconds: number): Promise<void>;
}

export const browserClock: Clock = {
  now: () => performance.now(),
  wait: (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds)),
};

/** Milliseconds until a browser reports that a device has nothing to do: 0.3 in Chromium, 33 with some Vulkan drivers. */
export interface ReportDelay {
  readonly usual: number;
  /** Between two looks of a browser that looks at fixed times only, as Firefox does each 100 ms; otherwise 0. */
  readonly period: number;
}

/** Milliseconds: shorter delays are within the noise of any measurement. */
const shortDelay = 2;
/** Parts of a period at which one asks. */
const phases = 3;
/** The median of the delays at these phases is half of the period where a browser looks at fixed times. */
const leastConstant = 0.8;

/** @param idle waits for the end of no work */
export async function measureDelay(
  idle: () => Promise<void>,
  { now, wait }: Clock = browserClock,
): Promise<ReportDelay> {
  const ask = async () => {
    const start = now();
    await idle();
    return now() - start;
  };
  // What was submitted before may be waited for as well. The second begins where a look of the browser ended.
  await ask();
  const first = await ask();
  if (first < shortDelay) return { usual: first, period: 0 };
  const samples: number[] = [];
  for (let phase = 0; phase < phases; phase++) {
    await wait((first * (phase + 0.5)) / phases);
    samples.push(await ask());
  }
  // Not the mean: a disturbed one must not make work seem shorter.
  const usual = medianOf(samples);
  const polled = usual >= shortDelay && usual < leastConstant * first;
  return { usual, period: polled ? first : 0 };
}

/** Seconds of work that a measurement has at least, so that the delay and its variation are small beside it. */
export const longEnough = ({ usual, period }: ReportDelay) =>
  Math.max(2 * usual, 2.5 * period) / 1000;

export interface TimeOptions {
  /** Seconds of work that a measurement has at least, more where the delay is long; 0: one execution does. */
  readonly atLeast?: number;
  readonly rounds?: number;
  /** Whether the work was executed before: the first execution also compiles. */
  readonly warm?: boolean;
  /** Executions of the first measurement. */
  readonly times?: number;
  /** Measured first where it is absent. */
  readonly delay?: ReportDelay;
  /** Takes the seconds of each work after a round; where it is true, that round was the last. */
  readonly decided?: (seconds: readonly number[]) => boolean;
  /** Called after each measurement with the index of the work and the seconds of one execution. */
  readonly onMeasured?: (index: number, seconds: number) => void;
  /** For tests. */
  readonly clock?: Clock;
}

/** Executions of one measurement. */
const mostTimes = 4096;
/** What is within a delay may be all noise: work is taken to last this part of the time that was waited. */
const leastPart = 1 / 8;
/** The next phase of a measurement: the golden ratio spreads any number of them evenly. */
const phaseStep = (Math.sqrt(5) - 1) / 2;

/**
 * Times work on a device: so many executions that a measurement is long.
 *
 * @param run executes the work so many times and resolves when it is done; 0 only waits
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
  const { rounds = 5, warm = false, onMeasured, clock = browserClock, times = 1 } = options;
  const works = runs.map((run, index) => ({ run, index, times, samples: [] as number[] }));
  type Work = (typeof works)[number];
  if (!warm) for (const { run } of works) await run(1);
  const delay = options.delay ?? (await measureDelay(() => runs[0]?.(0) as Promise<void>, clock));
  const asked = options.atLeast ?? 0.1;
  const atLeast = asked && Math.max(asked, longEnough(delay));
  // A measurement that is a little short has cost its delay all the same.
  const enough = delay.usual < shortDelay ? atLeast : 0.7 * atLeast;
  let phase = 0;
  const measure = async ({ run, index, times, samples }: Work) => {
    if (delay.period > 0) {
      phase = (phase + phaseStep) % 1;
      await clock.wait(phase * delay.period);
    }
    const start = clock.now();
    await run(times);
    const waited = clock.now() - start;
    const seconds = Math.max(waited - delay.usual, waited * leastPart) / 1000;
    samples.push(seconds / times);
    onMeasured?.(index, seconds / times);
    return seconds;
  };
  const truest = ({ samples }: Work) => timingOf(samples, delay).truest;
  for (const work of works) {
    for (let seconds = await measure(work); seconds < enough && work.times < mostTimes; ) {
      const needed = Math.ceil((work.times * atLeast) / seconds);
      work.times = Math.min(mostTimes, Math.max(2 * work.times, needed));
      work.samples.length = 0;
      seconds = await measure(work);
    }
  }
  // Of a browser that looks at fixed times one measurement tells little.
  const decided = (round: number) =>
    (round > 1 || delay.period === 0) && options.decided?.(works.map(truest));
  for (let round = 1; round < rounds && !decided(round); round++) {
    for (const work of round % 2 ? works.toReversed() : works) await measure(work);
  }
  return works.map(({ samples }) => timingOf(samples, delay));
}

function timingOf(samples: readonly number[], { usual }: ReportDelay): Timing {
  const median = medianOf(samples);
  return { median, truest: usual < shortDelay ? Math.min(...samples) : median };
}

function medianOf(samples: readonly number[]): number {
  const sorted = samples.toSorted((a, b) => a - b);
  const middle = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(middle)] ?? Number.NaN) + (sorted[Math.ceil(middle)] ?? 0)) / 2;
}

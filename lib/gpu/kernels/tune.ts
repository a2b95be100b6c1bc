import { KinoraError } from '../../contract';
import type { KernelFailure } from './compute';
import type { Kernel } from './kernel';
import { type Timing, timeInTurns, timeWork } from './time';
import type { KernelChoice } from './variants';

/** A family of kernels whose variants compete, as `KernelChoice` names it. */
export type Family = Exclude<keyof KernelChoice, 'mode' | 'storage'>;

/** A variant that competes in its family. */
export interface Candidate<V = unknown> {
  readonly variant: V;
  /** Of the kernel that is timed; it names the variant in the record. */
  readonly key: string;
  /** For people. */
  readonly name: string;
  /** What the check and the timing run. */
  readonly kernels: readonly Kernel[];
}

/** The variants of a family, and how one is checked and timed. */
export interface TunedFamily<V = unknown> {
  readonly family: Family;
  /** Best guess first. */
  readonly candidates: readonly Candidate<V>[];
  /** Why the numbers of a variant are wrong; null where they are right. */
  check(candidate: Candidate<V>): Promise<string | null>;
  /** Floating point operations of a timed run. */
  readonly flops: number;
  /**
   * Runs the timed work, `times` one after another, and waits until it is done.
   *
   * @param share of the work, 0 … 1
   */
  run(candidate: Candidate<V>, share: number, times: number): Promise<void>;
}

/** What became of a variant. */
export interface Tried {
  readonly family: Family;
  readonly key: string;
  readonly name: string;
  /** FLOP/s; null where it was not timed. */
  readonly rate: number | null;
  /** Why it is not used; null where it could be. */
  readonly reason: string | null;
}

/** The variant of a family that a device uses. */
export interface Winner<V = unknown> {
  readonly variant: V;
  readonly key: string;
  readonly name: string;
  /** FLOP/s; null where it was not timed. */
  readonly rate: number | null;
}

export interface TuningResult {
  /** Of the families that competed; null where no variant can be used. */
  readonly winners: Readonly<Partial<Record<Family, Winner | null>>>;
  readonly tried: readonly Tried[];
}

/** How far a tuning is. */
export interface TuningProgress {
  readonly family: Family;
  /** Variants that are done, or left out. */
  readonly done: number;
  readonly total: number;
}

export interface TuneOptions {
  readonly families: readonly TunedFamily[];
  readonly compile: (kernels: readonly Kernel[]) => Promise<readonly KernelFailure[]>;
  /** Where false, the first variant that computes right numbers wins. */
  readonly timing: boolean;
  /** Why variants must not be tried, by their keys. */
  readonly excluded?: Readonly<Record<string, string>>;
  /** Once aborted, nothing more is timed. */
  readonly skip?: AbortSignal;
  /** Milliseconds; for tests. */
  readonly clock?: Clock;
  readonly onProgress?: (progress: TuningProgress) => void;
  /** Called with a variant before it runs, and with null when it is done. */
  readonly onTrying?: (key: string | null) => Promise<void>;
  /** Called as soon as it is known how fast a kernel is, in FLOP/s. */
  readonly onRate?: (kernel: Kernel, rate: number) => void;
}

export interface Clock {
  now(): number;
  wait(milliseconds: number): Promise<void>;
}

const browserClock: Clock = {
  now: () => performance.now(),
  wait: (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds)),
};

/** Milliseconds. */
const budget = 10_000;
const longestCompile = 3000;
/** After so long a kernel is taken to hang. */
const longestRun = 5000;
/** A device clocks up under load. */
const warmUp = 150;
/** Seconds of one measurement, and of one run in it at most. */
const atLeast = 0.02;
const longestPart = 0.05;
const rounds = 3;
/** The first runs are so small, since their time is not known. */
const firstShare = 1 / 16;
/** A challenger wins by more than this. */
const margin = 0.03;
/** A family ends when two in a row are slower by more than this. */
const clearLoss = 0.15;

/**
 * Finds the fastest variant of each family on this device. A variant is compiled, its numbers are checked,
 * then it is timed in turns with the fastest so far. When the time is over, or the user skips it, the rest
 * is not timed: where a family has no variant yet, the first that computes right numbers wins.
 *
 * @throws KinoraError `DEVICE_LOST` where a variant does not end; `onTrying` was last called with it
 */
export async function tune(options: TuneOptions): Promise<TuningResult> {
  const { families, excluded = {}, onProgress } = options;
  const clock = options.clock ?? browserClock;
  const tuner = new Tuner(options, clock);
  const tried: Tried[] = [];
  const winners: Partial<Record<Family, Winner | null>> = {};
  const total = families.reduce((sum, { candidates }) => sum + candidates.length, 0);
  const begin = clock.now();
  let before = 0;
  for (const [index, tuned] of families.entries()) {
    const { family, candidates } = tuned;
    // What a family does not use is left to the next ones.
    const deadline = begin + (budget * (index + 1)) / families.length;
    let best: { candidate: Candidate; rate: number | null } | null = null;
    let losses = 0;
    for (const [at, candidate] of candidates.entries()) {
      onProgress?.({ family, done: before + at, total });
      const timed = options.timing && !options.skip?.aborted && clock.now() < deadline;
      if (best && (!timed || losses === 2)) break;
      const { key, name } = candidate;
      const reason = excluded[key] ?? (await tuner.failureOf(tuned, candidate));
      if (reason !== null) {
        tried.push({ family, key, name, rate: null, reason });
        continue;
      }
      if (!timed) {
        best = { candidate, rate: null };
        tried.push({ family, key, name, rate: null, reason: null });
        continue;
      }
      const { rate, rival } = await tuner.compare(tuned, candidate, best?.candidate ?? null);
      tried.push({ family, key, name, rate, reason: null });
      losses = rate < rival * (1 - clearLoss) ? losses + 1 : 0;
      if (rate > rival * (1 + margin)) best = { candidate, rate };
    }
    before += candidates.length;
    winners[family] = best && winnerOf(best);
  }
  return { winners, tried };
}

function winnerOf({ candidate, rate }: { candidate: Candidate; rate: number | null }): Winner {
  const { variant, key, name } = candidate;
  return { variant, key, name, rate };
}

/** Runs variants, with the limits of their times. */
class Tuner {
  /** Of a family's work that is timed: the same for all its variants. */
  readonly #shares = new Map<TunedFamily, number>();

  constructor(
    readonly options: TuneOptions,
    readonly clock: Clock,
  ) {}

  /** Why a variant cannot be used; null where it can. */
  async failureOf(tuned: TunedFamily, candidate: Candidate): Promise<string | null> {
    await this.options.onTrying?.(candidate.key);
    const reason =
      (await this.#compile(candidate)) ?? (await this.#limited(candidate, tuned.check(candidate)));
    await this.options.onTrying?.(null);
    return reason;
  }

  /** Times a variant in turns with the fastest so far. @returns FLOP/s; 0 for a rival that there is not */
  async compare(tuned: TunedFamily, candidate: Candidate, fastest: Candidate | null) {
    await this.options.onTrying?.(candidate.key);
    const runOf = (of: Candidate, share: number) => async (times: number) => {
      await this.#limited(of, tuned.run(of, share, times));
    };
    const run = (share: number) => runOf(candidate, share);
    const { now } = this.clock;
    const first = await timeWork(run(firstShare), { now, atLeast: 0, rounds: 1 });
    const guess = this.#tell(candidate, tuned.flops * firstShare, first);
    const share = this.#shares.get(tuned) ?? (await this.#warmUp(tuned, run, guess));
    this.#shares.set(tuned, share);
    const pair = [candidate, ...(fastest ? [fastest] : [])];
    const timings = await timeInTurns(
      pair.map((each) => runOf(each, share)),
      { now, atLeast, rounds, warm: true },
    );
    await this.options.onTrying?.(null);
    const [rate = 0, rival = 0] = timings.map((timing, index) =>
      this.#tell(pair[index] ?? candidate, tuned.flops * share, timing),
    );
    return { rate, rival };
  }

  /** Keeps the device at work until its clocks are up. @returns the share of the work that is timed */
  async #warmUp(
    tuned: TunedFamily,
    run: (share: number) => (times: number) => Promise<void>,
    rate: number,
  ) {
    const share = Math.max(firstShare, Math.min(1, (longestPart * rate) / tuned.flops));
    for (const begin = this.clock.now(); this.clock.now() - begin < warmUp; ) await run(share)(1);
    return share;
  }

  /** Within its time; slow compilers make each new shape wait as long. */
  async #compile({ kernels, name }: Candidate): Promise<string | null> {
    const late = this.clock.wait(longestCompile).then(() => 'late' as const);
    const compiling = this.options.compile(kernels);
    if (!this.options.timing) return reasonOf(await compiling);
    compiling.catch(() => undefined);
    const failures = await Promise.race([compiling, late]);
    return failures === 'late'
      ? `${name} takes over ${longestCompile / 1000} s to compile`
      : reasonOf(failures);
  }

  /** @throws KinoraError `DEVICE_LOST` where the work does not end: the device can be asked for nothing else */
  async #limited<T>({ name }: Candidate, work: Promise<T>): Promise<T> {
    if (!this.options.timing) return work;
    const hung = this.clock.wait(longestRun).then((): never => {
      throw new KinoraError('DEVICE_LOST', `The kernel ${name} did not end within 5 s.`);
    });
    hung.catch(() => undefined);
    return Promise.race([work, hung]);
  }

  #tell({ kernels }: Candidate, flops: number, { least }: Timing): number {
    const rate = flops / Math.max(least, 1e-9);
    for (const kernel of kernels) this.options.onRate?.(kernel, rate);
    return rate;
  }
}

function reasonOf([failure]: readonly KernelFailure[]): string | null {
  return failure?.reason ?? null;
}

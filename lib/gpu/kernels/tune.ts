import { KinoraError } from '../../contract';
import type { Family } from './choice';
import type { KernelFailure } from './compute';
import type { Kernel } from './kernel';
import { smallestFirst } from './registers';
import {
  browserClock,
  type Clock,
  longEnough,
  measureDelay,
  type ReportDelay,
  timeInTurns,
  timeWork,
} from './time';

/** A variant that is compared with the others of its family. */
export interface Candidate<V = unknown> {
  readonly variant: V;
  /** Of the kernel that is timed; it names the variant in the record. */
  readonly key: string;
  /** For people. */
  readonly name: string;
  /**
   * Variants that need registers alike. How fast they are depends on the device in a similar way, so that one which is
   * slow tells something about the others.
   */
  readonly registerClass: string;
  /** Results that a thread has in registers: the fewer, the sooner a kernel is compiled. */
  readonly results: number;
  /** What the check and the timing run. */
  readonly kernels: readonly Kernel[];
}

/** The variants of a family, and how one is checked and timed. */
export interface TunedFamily<V = unknown> {
  readonly family: Family;
  /** Classes of registers, and variants within a class, the best guess first. */
  readonly candidates: readonly Candidate<V>[];
  /** Why the numbers of a variant are wrong; null where they are right. */
  check(candidate: Candidate<V>): Promise<string | null>;
  /** Floating point operations of a timed run. */
  readonly flops: number;
  /**
   * Runs the timed work, `times` one after another, and waits until it is done; 0 only waits.
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
  /** Of the families that were tuned; null where no variant can be used. */
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
  /** For tests. */
  readonly clock?: Clock;
  readonly onProgress?: (progress: TuningProgress) => void;
  /** Called with a variant before it runs, and with null when it is done. */
  readonly onTrying?: (key: string | null) => Promise<void>;
  /** Called as soon as it is known how fast a kernel is, in FLOP/s. */
  readonly onRate?: (kernel: Kernel, rate: number) => void;
}

/** Milliseconds. */
const budget = 10_000;
/** Of one kernel. */
const longestCompile = 3000;
/** After so long a kernel is taken to hang. */
const longestRun = 5000;
/** A device clocks up under load. */
const warmUp = 150;
/** Seconds of one measurement, or more where the device tells late; of work that takes longer a share is timed. */
const atLeast = 0.03;
const rounds = 3;
/** The first runs are so small, since their time is not known. */
const firstShare = 1 / 64;
/** A variant replaces the fastest so far by more than this. */
const margin = 0.03;
/** A variant that is slower by more than this is not timed further, and two in a row end their class. */
const clearLoss = 0.15;
/** Until they are timed, variants count as fast as this part of the fastest: they are hardly slower. */
const slowest = 1 / 4;

/**
 * Finds the fastest variant of each family on this device. A variant is compiled, its numbers are checked,
 * then it is timed in turns with the fastest so far: the first of each class of registers, then the others of the
 * fastest class, of the second, and so on. When the time is over, or the user skips it, the rest is not timed. A
 * family that has no variant then uses the first that computes right numbers, or the smallest where some took too
 * long to compile.
 *
 * @throws KinoraError `DEVICE_LOST` where a variant does not end; `onTrying` was last called with it
 */
export async function tune(options: TuneOptions): Promise<TuningResult> {
  const { families } = options;
  const clock = options.clock ?? browserClock;
  const tuner = new Tuner(options, clock);
  const winners: Partial<Record<Family, Winner | null>> = {};
  const end = clock.now() + budget;
  for (const [index, tuned] of families.entries()) {
    // The families that are left share the time that is left.
    const now = clock.now();
    const deadline = now + (end - now) / (families.length - index);
    winners[tuned.family] = await tuner.winnerOf(tuned, deadline);
  }
  return { winners, tried: tuner.tried };
}

function classesOf(candidates: readonly Candidate[]): Candidate[][] {
  const classes = new Map<string, Candidate[]>();
  for (const candidate of candidates) {
    const { registerClass } = candidate;
    classes.set(registerClass, [...(classes.get(registerClass) ?? []), candidate]);
  }
  return [...classes.values()];
}

/** Runs variants, with the limits of their times. */
class Tuner {
  /** Of the families that are done, in the order in which they were tried. */
  readonly tried: Tried[] = [];
  /** The same of this family, by their keys. */
  readonly #tried = new Map<string, Tried>();
  /** What took too long to compile. */
  readonly #late = new Set<Candidate>();
  /** Of a family's work that is timed: the same for all its variants. */
  readonly #shares = new Map<TunedFamily, number>();
  /** Variants of the families before. */
  #before = 0;
  #delay: ReportDelay | undefined;

  constructor(
    readonly options: TuneOptions,
    readonly clock: Clock,
  ) {}

  /** The fastest variant of a family; null where no variant can be used. */
  async winnerOf(tuned: TunedFamily, deadline: number): Promise<Winner | null> {
    const { timing, skip } = this.options;
    const { candidates } = tuned;
    const classes = classesOf(candidates);
    const rates = new Map<Candidate, number>();
    let best = null as Candidate | null;
    const open = () => timing && !skip?.aborted && this.clock.now() < deadline;
    /** @returns whether it is clearly slower than the fastest */
    const compare = async (candidate: Candidate): Promise<boolean> => {
      if (!(await this.#isUsable(tuned, candidate, true))) return false;
      const fastestSoFar = best && { candidate: best, rate: rates.get(best) ?? 0 };
      const [rate, fastestRate] = await this.#compare(tuned, candidate, fastestSoFar);
      this.#note(tuned, candidate, { rate });
      rates.set(candidate, rate);
      if (rate > fastestRate * (1 + margin)) best = candidate;
      return rate < fastestRate * (1 - clearLoss);
    };
    const slow = new Set<Candidate>();
    for (const [first] of classes) {
      if (first && open() && (await compare(first))) slow.add(first);
    }
    const rateOf = ([first]: readonly Candidate[]) => (first && rates.get(first)) ?? 0;
    for (const [first, ...others] of classes.toSorted((a, b) => rateOf(b) - rateOf(a))) {
      let losses = first && slow.has(first) ? 1 : 0;
      for (const candidate of others) {
        if (!open() || losses === 2) break;
        losses = (await compare(candidate)) ? losses + 1 : 0;
      }
    }
    if (best !== null && open()) {
      // It may have been measured once.
      const [rate = 0] = await this.#time(tuned, [best], rates.get(best) ?? 0, rounds);
      this.#note(tuned, best, { rate });
      rates.set(best, rate);
    }
    best ??= await this.#untimed(tuned);
    this.#before += candidates.length;
    this.tried.push(...this.#tried.values());
    this.#tried.clear();
    this.#late.clear();
    if (best === null) return null;
    const { variant, key, name } = best;
    return { variant, key, name, rate: rates.get(best) ?? null };
  }

  /** The first variant that computes right numbers; of those that take long to compile, the smallest. */
  async #untimed(tuned: TunedFamily): Promise<Candidate | null> {
    for (;;) {
      const late = tuned.candidates.filter((candidate) => this.#late.has(candidate));
      const untried = tuned.candidates.filter(({ key }) => !this.#tried.has(key));
      const next =
        late.length > 0
          ? smallestFirst([...untried, ...late], ({ results }) => results)[0]
          : untried[0];
      if (!next) return null;
      if (await this.#isUsable(tuned, next, late.length === 0)) {
        this.#note(tuned, next, { rate: null });
        return next;
      }
    }
  }

  #note(
    { family }: TunedFamily,
    { key, name }: Candidate,
    { rate = null, reason = null }: Partial<Tried>,
  ): void {
    this.#tried.set(key, { family, key, name, rate, reason });
  }

  /** Compiles and checks a variant. @param limited whether it may be too late */
  async #isUsable(tuned: TunedFamily, candidate: Candidate, limited: boolean): Promise<boolean> {
    const { excluded = {}, families, onProgress, onTrying } = this.options;
    const { family, candidates } = tuned;
    const { key, name } = candidate;
    const done = this.#before + candidates.filter((each) => this.#tried.has(each.key)).length;
    const total = families.reduce((sum, each) => sum + each.candidates.length, 0);
    onProgress?.({ family, done, total });
    let reason = excluded[key] ?? null;
    if (reason === null) {
      await onTrying?.(key);
      this.#late.delete(candidate);
      const failure = await this.#compile(candidate, limited);
      if (failure === 'late') {
        this.#late.add(candidate);
        reason = `${name} takes over ${longestCompile / 1000} s to compile`;
      } else {
        reason = failure?.reason ?? (await this.#limited(candidate, tuned.check(candidate)));
      }
      await onTrying?.(null);
    }
    if (reason !== null) this.#note(tuned, candidate, { reason });
    return reason === null;
  }

  /**
   * Times a variant, in turns with the fastest so far.
   *
   * @returns FLOP/s of both; 0 for the fastest where there is none yet
   */
  async #compare(
    tuned: TunedFamily,
    candidate: Candidate,
    fastest: { readonly candidate: Candidate; readonly rate: number } | null,
  ): Promise<readonly [number, number]> {
    await this.options.onTrying?.(candidate.key);
    let rates: readonly number[];
    if (fastest) {
      // The first run compiles. The reported rate decides how much is submitted at a time.
      await this.#run(tuned, candidate, firstShare, 1);
      this.#tell(candidate, fastest.rate * slowest);
      rates = await this.#time(tuned, [candidate, fastest.candidate], fastest.rate, rounds);
    } else {
      rates = await this.#time(tuned, [candidate], await this.#warmUp(tuned, candidate), 1);
    }
    await this.options.onTrying?.(null);
    const [own = 0, other = 0] = rates;
    return [own, other];
  }

  /** Times variants in turns until one of two is clearly faster. @returns FLOP/s */
  async #time(
    tuned: TunedFamily,
    candidates: readonly Candidate[],
    expectedRate: number,
    rounds: number,
  ): Promise<readonly number[]> {
    const { clock } = this;
    const share = this.#shares.get(tuned) ?? firstShare;
    const delay = await this.#delayOf(tuned, candidates[0] as Candidate);
    const flops = tuned.flops * share;
    const tell = (index: number, seconds: number) =>
      this.#tell(candidates[index] as Candidate, flops / seconds);
    const timings = await timeInTurns(
      candidates.map((each) => (times) => this.#run(tuned, each, share, times)),
      {
        clock,
        delay,
        atLeast,
        rounds,
        warm: true,
        times: Math.max(1, Math.floor((this.#wanted(delay) * expectedRate) / flops)),
        decided: ([own = 0, other = own]) =>
          Math.abs(own - other) > clearLoss * Math.max(own, other),
        onMeasured: tell,
      },
    );
    return timings.map(({ truest }, index) => tell(index, truest));
  }

  /** Measured once. */
  async #delayOf(tuned: TunedFamily, candidate: Candidate): Promise<ReportDelay> {
    const idle = () => this.#run(tuned, candidate, firstShare, 0);
    this.#delay ??= await measureDelay(idle, this.clock);
    return this.#delay;
  }

  #wanted = (delay: ReportDelay) => Math.max(atLeast, longEnough(delay));

  /**
   * Keeps the device at work until its clocks are up, and notes the share of the work that is timed.
   *
   * @returns FLOP/s, or less where the delay of reports hides the work
   */
  async #warmUp(tuned: TunedFamily, candidate: Candidate): Promise<number> {
    const { clock } = this;
    const delay = await this.#delayOf(tuned, candidate);
    const once = { clock, delay, atLeast: 0, rounds: 1, warm: true };
    let share = firstShare;
    let rate = 0;
    const begin = clock.now();
    do {
      const run = (times: number) => this.#run(tuned, candidate, share, times);
      const { truest } = await timeWork(run, once);
      rate = this.#tell(candidate, (tuned.flops * share) / truest);
      // A small share may not fill the device: a larger one tells its rate.
      share = Math.max(firstShare, Math.min(1, (this.#wanted(delay) * rate) / tuned.flops));
    } while (clock.now() - begin < warmUp);
    this.#shares.set(tuned, share);
    return rate;
  }

  #run(tuned: TunedFamily, of: Candidate, share: number, times: number): Promise<void> {
    return this.#limited(of, tuned.run(of, share, times));
  }

  /** Compiles what a variant runs; `late` where one of the kernels takes too long, and the time is limited. */
  async #compile({ kernels }: Candidate, limited: boolean): Promise<KernelFailure | 'late' | null> {
    const compiling = kernels.map((kernel) => this.options.compile([kernel]));
    if (this.options.timing && limited) {
      const pending = new Map(compiling.map((each, index) => [index, each.then(() => index)]));
      for (const one of pending.values()) one.catch(() => undefined);
      // A compiler may take them one after another: the time begins anew with each that is done.
      while (pending.size > 0) {
        const late = this.clock.wait(longestCompile).then(() => 'late' as const);
        const done = await Promise.race([late, ...pending.values()]);
        if (done === 'late') return done;
        pending.delete(done);
      }
    }
    return (await Promise.all(compiling)).flat()[0] ?? null;
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

  /** @returns the rate, FLOP/s */
  #tell({ kernels }: Candidate, rate: number): number {
    for (const kernel of kernels) this.options.onRate?.(kernel, rate);
    return rate;
  }
}

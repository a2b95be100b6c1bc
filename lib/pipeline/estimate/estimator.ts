import type { ProgressEvent } from '../../contract';
import { phaseNames } from '../../contract/format';
import { Pace, pacesBefore } from './pace';
import type { Rate, Rates, UsualRate } from './rates';
import { type Cost, type Stage, shareOfSteps } from './stages';
import { type TimeLeft, TimeLeftTeller } from './time-left';

type EventOf<Type extends ProgressEvent['type']> = Extract<ProgressEvent, { type: Type }>;

/** What an estimate starts from. */
export interface EstimatorOptions {
  /** In order; see `stagesOf`. */
  readonly stages: readonly Stage[];
  /** What is expected of a device of this class. */
  readonly usual: Readonly<Record<Cost, UsualRate>>;
  /** What was measured on this device with this model. */
  readonly remembered: Rates;
  /** Whether the user asked to finish early: later clips and steps are then left out. */
  readonly finishing?: () => boolean;
  /** Seconds; for tests. */
  readonly now?: () => number;
}

/** What is said of a run. */
export type Estimate = TimeLeft & { readonly share: number };

/** Least share of a stage that is measured as one piece: a decoder hands out four frames at a time. */
const leastPiece = 1 / 32;
/** Of a piece of work that takes longer than expected, this share of its time is taken to be left. */
const overtimeShare = 0.1;

/**
 * One estimate over all phases of a run: which work is done follows from the events of the engine; how long
 * the rest takes is counted work times a rate, the median of what this run has measured, else what an earlier
 * run has, else what is usual. Between events it moves with the clock, at most by the piece that is under way.
 */
export class RunEstimator {
  readonly #stages: readonly Stage[];
  readonly #paces: Record<Cost, Pace>;
  readonly #remembered: Rates;
  readonly #finishing: () => boolean;
  readonly #now: () => number;
  readonly #teller = new TimeLeftTeller();
  /** Share of each stage that is done. */
  readonly #done: number[];
  /** Index of the stage that is under way; −1 before the first. */
  #index = -1;
  /** What was done of it, and when, at the last measurement; and how large the last piece was. */
  #from = 0;
  #at: number;
  #piece = 0;
  #pausedAt: number | null = null;
  #decodeFactor = 1;
  #share = 0;
  #replans = 0;
  #replansSaid = 0;

  constructor(options: EstimatorOptions) {
    const { stages, usual, remembered, finishing, now } = options;
    this.#stages = stages;
    this.#paces = pacesBefore(stages, usual, remembered);
    this.#remembered = remembered;
    this.#finishing = finishing ?? (() => false);
    this.#now = now ?? (() => performance.now() / 1000);
    this.#done = stages.map(() => 0);
    this.#at = this.#now();
  }

  /** Applies an event of the run. @returns whether it tells how far the run is */
  take(event: ProgressEvent): boolean {
    const { phase } = this.#stages[this.#index] ?? {};
    switch (event.type) {
      case 'phase':
        return this.#enter(event);
      case 'bytes':
        return (
          (phase === 'text' || phase === 'load') && this.#reach(event.bytesDone / event.bytesTotal)
        );
      case 'step':
        return phase === 'denoise' && this.#onStep(event.step);
      case 'tile': {
        const { tile, tiles, frame, frames } = event;
        return phase === 'decode' && this.#reach((tile - 1 + frame / frames) / tiles);
      }
      case 'frame':
        return phase === 'decode' && this.#onFrame(event.frame);
      case 'check':
        return phase === 'check' && this.#reach(event.done / event.total);
      case 'checkpoint':
        return this.#onCheckpoint(event);
      case 'paused':
        return this.#pause(event.paused);
      case 'plan':
        this.#replans = event.memory.replans;
        return true;
      default:
        return false;
    }
  }

  /** The decode takes so many times the work of one of whole frames. */
  decodeFactor(factor: number): void {
    this.#decodeFactor = factor;
  }

  /** A rate that was found before the work began, where none was remembered; 0 is work that is left out. */
  expect(cost: Cost, rate: Rate): void {
    if (!this.#remembered[cost] || rate.perUnit === 0) this.#paces[cost] = new Pace(rate, true);
  }

  /** What is to be said now. */
  current(): Estimate {
    const at = this.#pausedAt ?? this.#now();
    const left = this.secondsLeft(at);
    const started = new Set<Cost>();
    const whole = this.#stages.reduce(
      (sum, stage) =>
        sum + this.#secondsOf(stage, 1, started, this.#paces[stage.cost].rate.startup),
      0,
    );
    if (whole > 0) this.#share = Math.max(this.#share, 1 - left / Math.max(left, whole));
    return { share: this.#share, ...this.#teller.say(left, at, () => this.#cause()) };
  }

  /** Seconds until the run ends. @param at now, on the estimator's clock */
  secondsLeft(at: number): number {
    const finishing = this.#finishing();
    const clip = this.#stages[this.#index]?.clip ?? 0;
    const started = new Set<Cost>();
    let seconds = 0;
    for (const [i, stage] of this.#stages.entries()) {
      if (i < this.#index) continue;
      const ofRun = stage.phase === 'check' || stage.phase === 'finish';
      const isMade = ofRun || (stage.phase !== 'denoise' && stage.clip === clip);
      if (i === this.#index) seconds += this.#secondsOfPresent(stage, at, started);
      else if (!finishing || isMade) {
        seconds += this.#secondsOf(stage, 1 - (this.#done[i] ?? 0), started);
      }
    }
    return seconds;
  }

  /** Whether the rate of the denoiser was measured on this device; else it is what is usual. */
  get isMeasured(): boolean {
    return this.#paces.denoise.isKnown;
  }

  /** The rates that this run has measured, to be remembered. */
  measured(): Rates {
    const rates: Partial<Record<Cost, Rate>> = {};
    for (const [cost, pace] of Object.entries(this.#paces)) {
      if (pace.isMeasured) rates[cost as Cost] = pace.rate;
    }
    return rates;
  }

  /**
   * @param started costs whose startup is counted already; is added to
   * @param startup seconds of it; what is left of it when absent
   */
  #secondsOf(
    stage: Stage,
    share: number,
    started: Set<Cost>,
    startup = this.#paces[stage.cost].startupLeft,
  ): number {
    const work = share * this.#totalOf(stage);
    if (work <= 0) return 0;
    const first = started.has(stage.cost) ? 0 : startup;
    started.add(stage.cost);
    return first + this.#rateOf(stage.cost).perUnit * work;
  }

  /** What is left of the stage that is under way. */
  #secondsOfPresent(stage: Stage, at: number, started: Set<Cost>): number {
    const left = 1 - this.#from;
    const piece = Math.min(left, this.#nextPiece(stage));
    const expected = this.#secondsOf(stage, piece, started);
    const passed = at - this.#at;
    const ofPiece = Math.max(expected - passed, overtimeShare * Math.min(passed, expected));
    if (this.#finishing() && stage.phase === 'denoise') return ofPiece;
    // As if the piece were done now, where nothing else is known: the others will take longer too.
    const isLate = passed > expected && !this.#paces[stage.cost].isMeasured;
    const slower = isLate && expected > 0 ? passed / expected : 1;
    return ofPiece + slower * this.#secondsOf(stage, left - piece, started);
  }

  /** Share of the stage that is done before its next event. */
  #nextPiece({ steps }: Stage): number {
    if (!steps) return this.#piece > 0 ? this.#piece : 1;
    let reached = 0;
    for (const step of steps) {
      if (reached > this.#from - 1e-9) return step;
      reached += step;
    }
    return 1;
  }

  #totalOf({ phase, total }: Stage): number {
    return phase === 'decode' ? this.#decodeFactor * total : total;
  }

  /** Until anything was decoded, a decode is as much faster than usual as denoising was. */
  #rateOf(cost: Cost): Rate {
    const { rate, isKnown, usual } = this.#paces[cost];
    const { denoise } = this.#paces;
    const isDecode = cost === 'decode' || cost === 'tiny-decode';
    if (!isDecode || isKnown || !denoise.isKnown) return rate;
    const factor = denoise.rate.perUnit / denoise.usual.perUnit;
    return { startup: usual.startup, perUnit: usual.perUnit * factor };
  }

  #enter({ phase, clip }: EventOf<'phase'>): boolean {
    const opened = this.#stages.findIndex((stage) => stage.phase === 'open');
    const next =
      phase === 'load' && this.#index < opened
        ? opened
        : this.#stages.findIndex((stage) => stage.phase === phase && stage.clip === clip);
    if (next < 0 || next === this.#index) return false;
    const present = this.#stages[this.#index];
    // What no event told of is done now; a denoising or a decode that ended before was cut short.
    if (present && next > this.#index && !present.steps && !present.frames) this.#measure(1);
    for (let i = 0; i < next; i++) this.#done[i] = 1;
    // After the memory ran out, weights are loaded again.
    if (next < this.#index) this.#done[next] = 0;
    this.#index = next;
    this.#from = this.#done[next] ?? 0;
    this.#at = this.#now();
    this.#piece = 0;
    return true;
  }

  /** The stage is done up to this share. */
  #reach(share: number): boolean {
    if (!(share >= 0)) return false;
    this.#done[this.#index] = Math.min(1, share);
    // A decode that begins again has done less than before.
    if (share < this.#from) [this.#from, this.#at] = [share, this.#now()];
    else if (share - this.#from >= leastPiece) this.#measure(Math.min(1, share));
    return true;
  }

  /** Measures what was done since the last time. */
  #measure(share: number): void {
    const stage = this.#stages[this.#index];
    const now = this.#now();
    const work = stage ? (share - this.#from) * this.#totalOf(stage) : 0;
    if (stage && work > 0) {
      const rate = this.#rateOf(stage.cost);
      this.#paces[stage.cost].take({ work, seconds: now - this.#at }, rate);
      this.#piece = share - this.#from;
    }
    this.#done[this.#index] = share;
    [this.#from, this.#at] = [share, now];
  }

  #onStep(step: number): boolean {
    const stage = this.#stages[this.#index];
    if (!stage) return false;
    // Steps that were not reported are of an earlier run.
    this.#from = Math.max(this.#from, shareOfSteps(stage, step - 1));
    this.#measure(shareOfSteps(stage, step));
    return true;
  }

  #onFrame(frame: number): boolean {
    const earlier = this.#stages.slice(0, this.#index).reduce((n, { frames = 0 }) => n + frames, 0);
    const share = (frame - earlier) / (this.#stages[this.#index]?.frames ?? 1);
    // Frames that were decoded in tiles are handed out at the end.
    return share > (this.#done[this.#index] ?? 0) ? this.#reach(share) : true;
  }

  /** Where it is ahead of what this run has done, an earlier run has done the difference. */
  #onCheckpoint({ checkpoint: { clip, step } }: EventOf<'checkpoint'>): boolean {
    for (const [index, stage] of this.#stages.entries()) {
      if (stage.phase !== 'denoise' || stage.clip > clip) continue;
      const share = stage.clip < clip ? 1 : shareOfSteps(stage, step);
      this.#done[index] = Math.max(share, this.#done[index] ?? 0);
    }
    return true;
  }

  #pause(paused: boolean): boolean {
    if (paused) this.#pausedAt ??= this.#now();
    else if (this.#pausedAt !== null) {
      this.#at += this.#now() - this.#pausedAt;
      this.#pausedAt = null;
    }
    return true;
  }

  /** Why the time left grows. */
  #cause(): string {
    const stage = this.#stages[this.#index];
    if (this.#replans > this.#replansSaid) {
      this.#replansSaid = this.#replans;
      return 'Memory ran out: continuing with a smaller plan.';
    }
    if (!stage || !this.#remembered[stage.cost]) return 'First run on this device: measuring.';
    if (stage.cost === 'denoise') return 'A step takes longer than before.';
    const phase = stage.phase === 'open' ? 'load' : stage.phase;
    return `“${phaseNames[phase]}” takes longer than before.`;
  }
}

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
  const estimator = new RunEstimator({ stages, usual, remembered, now: () => 0 });
  estimator.decodeFactor(decodeFactor);
  return { seconds: estimator.secondsLeft(0), measured: estimator.isMeasured };
}

import type { ProgressEvent } from '../../contract';
import { phaseNames } from '../../contract/format';
import { measuredRate, paceAfter, paceOf, secondsFor } from './pace';
import type { Rate, Rates, UsualRate } from './rates';
import { type TimeLeft, TimeLeftTeller } from './time-left';
import { RunTracker } from './tracker';
import type { Cost, Stage } from './work';

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

/** A latent frame becomes so many frames, which are decoded together. */
const framesAtOnce = 4;
/** Of a piece of work that takes longer than expected, this share of its time is taken to be left. */
const overtimeShare = 0.1;

/**
 * One estimate over all phases of a run: which work is done follows from the events of the engine; how
 * long the rest takes, from rates that were measured in this run, before it, or are usual. Between events
 * it moves with the clock, at most by the piece of work that is under way. A resumed run tells its
 * checkpoint first: what is done counts as time that has passed.
 */
export class RunEstimator {
  readonly #tracker: RunTracker;
  readonly #remembered: Rates;
  readonly #finishing: () => boolean;
  readonly #teller = new TimeLeftTeller();
  readonly #begin: number;
  #share = 0;
  #replans = 0;
  #replansSaid = 0;

  constructor(options: EstimatorOptions) {
    const { stages, usual, remembered, finishing, now } = options;
    const clock = now ?? (() => performance.now() / 1000);
    this.#tracker = new RunTracker(stages, usual, remembered, clock);
    this.#remembered = remembered;
    this.#finishing = finishing ?? (() => false);
    this.#begin = clock();
  }

  /** Applies an event of the run. @returns whether it tells how far the run is */
  take(event: ProgressEvent): boolean {
    if (event.type === 'plan') this.#replans = event.memory.replans;
    return this.#tracker.take(event);
  }

  /** A frame was scaled and encoded in so many seconds; call it before the frame's event. */
  encoded(seconds: number): void {
    this.#tracker.encoded(seconds);
  }

  /** The decode takes so many times the work of one of whole frames. */
  decodeFactor(factor: number): void {
    this.#tracker.decodeFactor = factor;
  }

  /** A rate that this run has found otherwise, where none was remembered; 0 is work that is left out. */
  expect(cost: Cost, rate: Rate): void {
    const { paces } = this.#tracker;
    if (!paces[cost].known || rate.perUnit === 0) paces[cost] = paceOf(rate, true);
  }

  /** What is to be said now. */
  current(): Estimate {
    const { now, pausedAt, paused, before } = this.#tracker;
    const at = pausedAt ?? now();
    const left = this.#secondsLeft(at);
    const passed = at - this.#begin - paused + before;
    if (passed > 0) this.#share = Math.max(this.#share, passed / (passed + left));
    const known = this.#isKnown() ? left : null;
    return { share: this.#share, ...this.#teller.say(known, at, () => this.#cause()) };
  }

  /** The rates that this run has measured, to be remembered. */
  measured(): Rates {
    const rates: Partial<Record<Cost, Rate>> = {};
    for (const [cost, pace] of Object.entries(this.#tracker.paces)) {
      const rate = measuredRate(pace);
      if (rate) rates[cost as Cost] = rate;
    }
    return rates;
  }

  #secondsLeft(now: number): number {
    const { stages, stage, index } = this.#tracker;
    const finishing = this.#finishing();
    const started = new Set<Cost>();
    let seconds = this.#secondsOfStage(now, finishing, started);
    for (let i = Math.max(0, index + 1); i < stages.length; i++) {
      const { phase, clip } = stages[i] as Stage;
      const ofRun = phase === 'check' || phase === 'finish';
      const left = !finishing || ofRun || (phase !== 'denoise' && clip === (stage?.clip ?? 0));
      if (left) seconds += this.#tracker.secondsOf(i, started);
    }
    return seconds;
  }

  /** What is left of the stage that is under way. */
  #secondsOfStage(now: number, finishing: boolean, started: Set<Cost>): number {
    const { stage, index, at, done } = this.#tracker;
    const [work] = stage?.work ?? [];
    if (!work) return 0;
    started.add(work.cost);
    const others = this.#tracker.secondsOf(index, started, 1);
    const left = 1 - (done[index]?.[0] ?? 0);
    const total = this.#tracker.totalOf(work);
    if (left === 0 || total === 0) return others;
    const unit = Math.min(left, this.#unit());
    const pace = this.#tracker.paceOf(work.cost);
    const expected = secondsFor(pace, unit * total);
    const passed = now - at;
    const isLate = passed > expected;
    // As if the piece were done now: the others will take longer too.
    const later = isLate ? paceAfter(pace, { work: unit * total, seconds: passed }, total) : pace;
    const rest = finishing && work.cost === 'denoise' ? 0 : left - unit;
    const ofUnit = Math.max(expected - passed, overtimeShare * Math.min(passed, expected));
    return ofUnit + later.perUnit * rest * total + others;
  }

  /** Share of the stage that is done before its next event. */
  #unit(): number {
    const { stage, index, done, lastShare } = this.#tracker;
    const [work] = stage?.work ?? [];
    if (stage?.phase === 'denoise') {
      const reached = done[index]?.[0] ?? 0;
      let sum = 0;
      for (const step of work?.steps ?? []) {
        if (sum / (work?.total ?? 1) > reached - 1e-9) return step / (work?.total ?? 1);
        sum += step;
      }
    }
    if (stage?.frames) return Math.max(lastShare, framesAtOnce / stage.frames);
    if (lastShare > 0) return lastShare;
    return 1;
  }

  /** Whether the stages that matter were measured, here or in an earlier run. */
  #isKnown(): boolean {
    const { stages, index, done } = this.#tracker;
    const matters = stages.findLast(
      ({ phase }, i) => i >= index && (done[i]?.[0] ?? 0) < 1 && phase === 'denoise',
    );
    const decode = stages.findLast(({ phase }) => phase === 'decode')?.work[0];
    return this.#tracker.paceOf(matters || !decode ? 'denoise' : decode.cost).known;
  }

  /** Why the time left grows. */
  #cause(): string {
    const { stage } = this.#tracker;
    if (this.#replans > this.#replansSaid) {
      this.#replansSaid = this.#replans;
      return 'Memory ran out: continuing with a smaller plan.';
    }
    const cost = stage?.work[0]?.cost;
    if (!cost || !this.#remembered[cost]) return 'First run on this device: measuring.';
    if (cost === 'denoise') return 'A step takes longer than before.';
    const phase = stage.phase === 'open' ? 'load' : stage.phase;
    return `“${phaseNames[phase]}” takes longer than before.`;
  }
}

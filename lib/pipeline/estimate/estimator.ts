import type { ProgressEvent } from '../../contract';
import type { Cost, Paces } from './rates';
import { type Stage, shareOfSteps } from './stages';

type EventOf<Type extends ProgressEvent['type']> = Extract<ProgressEvent, { type: Type }>;

/** What an estimate starts from. */
export interface EstimatorOptions {
  /** In order; see `stagesOf`. */
  readonly stages: readonly Stage[];
  /** What was measured on this device with this model. */
  readonly remembered: Paces;
  /** Whether the user asked to finish early: later clips and steps are then left out. */
  readonly finishing?: () => boolean;
  /** Seconds; for tests. */
  readonly now?: () => number;
}

/** Seconds that work took, and that a usual device takes for it. */
interface Piece {
  readonly seconds: number;
  readonly usual: number;
}

/** Least share of a stage that is measured as one piece: a decoder hands out four frames at a time. */
const leastPiece = 1 / 32;
/** Pieces of which the median is taken: a few, so that a device that becomes slower is seen. */
const latest = 5;

/**
 * One estimate over all phases of a run. Which work is done follows from the events of the engine; what is
 * ahead is counted work (`Stage.seconds`) times a pace: the median of what this run has measured, else what an
 * earlier run has, else that of a usual device. Between events it moves with the clock.
 */
export class RunEstimator {
  readonly #stages: readonly Stage[];
  /** What is known before the run measures. */
  readonly #known: Partial<Record<Cost, number>>;
  /** What the run has measured of each cost, piece by piece. */
  readonly #measured = new Map<Cost, Piece[]>();
  readonly #finishing: () => boolean;
  readonly #now: () => number;
  /** Share of each stage that is done, and when that was last measured. */
  readonly #done: number[];
  #at: number;
  /** Index of the stage that is under way; −1 before the first. */
  #index = -1;
  #pausedAt: number | null = null;
  #decodeFactor = 1;
  #share = 0;

  constructor({ stages, remembered, finishing, now }: EstimatorOptions) {
    this.#stages = stages;
    this.#known = { ...remembered };
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
      default:
        return false;
    }
  }

  /** The decode takes so many times the work of one of whole frames. */
  decodeFactor(factor: number): void {
    this.#decodeFactor = factor;
  }

  /** A pace that was found before the work began, where no run has measured it; 0 is work that is left out. */
  expect(cost: Cost, pace: number): void {
    if (pace === 0) this.#known[cost] = 0;
    else this.#known[cost] ??= pace;
  }

  /** What is to be said now. */
  current(): { readonly share: number; readonly secondsRemaining: number } {
    const secondsRemaining = this.secondsLeft();
    const whole = this.#stages.reduce((sum, stage) => sum + this.#secondsOf(stage), 0);
    const share = whole > 0 ? 1 - secondsRemaining / Math.max(secondsRemaining, whole) : 0;
    this.#share = Math.max(this.#share, share);
    return { share: this.#share, secondsRemaining };
  }

  /** Seconds until the run ends. */
  secondsLeft(): number {
    const finishing = this.#finishing();
    const clip = this.#stages[this.#index]?.clip ?? 0;
    let seconds = 0;
    for (const [i, stage] of this.#stages.entries()) {
      const ofRun = stage.phase === 'check' || stage.phase === 'finish';
      const isMade = ofRun || (stage.phase !== 'denoise' && stage.clip === clip);
      const left = 1 - (this.#done[i] ?? 0);
      if (i === this.#index) {
        const next = this.#nextPiece(stage);
        const present = Math.max(0, next * this.#secondsOf(stage) - this.#passed);
        const later = finishing && stage.phase === 'denoise' ? 0 : left - next;
        seconds += present + later * this.#secondsOf(stage);
      } else if (i > this.#index && (!finishing || isMade))
        seconds += left * this.#secondsOf(stage);
    }
    return seconds;
  }

  /** Whether the pace of the denoiser was measured on this device; else it is what is usual. */
  get isMeasured(): boolean {
    return this.#known.denoise !== undefined || this.#measured.has('denoise');
  }

  /** The paces that this run has measured, to be remembered. */
  measured(): Paces {
    const sum = (pieces: Piece[], of: keyof Piece) =>
      pieces.reduce((all, each) => all + each[of], 0);
    return Object.fromEntries(
      [...this.#measured].map(([cost, all]) => [cost, sum(all, 'seconds') / sum(all, 'usual')]),
    );
  }

  /** Seconds since the last measurement. */
  get #passed(): number {
    return (this.#pausedAt ?? this.#now()) - this.#at;
  }

  /** Expected seconds of a whole stage. */
  #secondsOf(stage: Stage): number {
    return this.#workOf(stage) * this.#paceOf(stage.cost);
  }

  #workOf({ phase, seconds }: Stage): number {
    return phase === 'decode' ? this.#decodeFactor * seconds : seconds;
  }

  #paceOf(cost: Cost): number {
    // The first piece has the kernels in it that are compiled.
    const [first, ...pieces] = (this.#measured.get(cost) ?? []).map((of) => of.seconds / of.usual);
    const known = medianOf(pieces.slice(-latest)) ?? this.#known[cost] ?? first;
    if (known !== undefined) return known;
    // Until anything was decoded, a decode is as much slower than usual as denoising is.
    const pace = cost === 'decode' || cost === 'tiny-decode' ? this.#paceOf('denoise') : 1;
    const stage = this.#stages[this.#index];
    const next = stage?.cost === cost ? this.#nextPiece(stage) * this.#workOf(stage) : 0;
    // A first piece that takes longer than expected tells of the others.
    return next > 0 ? Math.max(pace, this.#passed / next) : pace;
  }

  /** Share of the stage under way that is done before its next measurement. */
  #nextPiece({ steps, cost }: Stage): number {
    const done = this.#done[this.#index] ?? 0;
    let reached = 0;
    for (const step of steps ?? []) {
      if (reached > done - 1e-9) return step;
      reached += step;
    }
    return this.#measured.has(cost) ? Math.min(leastPiece, 1 - done) : 1 - done;
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
    this.#done.fill(1, 0, next);
    // After the memory ran out, weights are loaded again.
    if (next < this.#index) this.#done[next] = 0;
    this.#index = next;
    this.#at = this.#now();
    return true;
  }

  /** The stage is done up to this share. A decode that begins again has done less than before. */
  #reach(share: number): boolean {
    const done = this.#done[this.#index] ?? 0;
    if (share < done) [this.#done[this.#index], this.#at] = [share, this.#now()];
    else if (share >= 1 || share - done >= leastPiece) this.#measure(Math.min(1, share));
    return true;
  }

  /** Measures what was done since the last time. */
  #measure(share: number): void {
    const stage = this.#stages[this.#index];
    const usual = stage ? (share - (this.#done[this.#index] ?? 0)) * this.#workOf(stage) : 0;
    if (stage && usual > 0) {
      const earlier = this.#measured.get(stage.cost) ?? [];
      this.#measured.set(stage.cost, [...earlier, { seconds: this.#passed, usual }]);
    }
    [this.#done[this.#index], this.#at] = [share, this.#now()];
  }

  #onStep(step: number): boolean {
    const stage = this.#stages[this.#index];
    if (!stage) return false;
    // Steps that were not reported are of an earlier run.
    const before = shareOfSteps(stage, step - 1);
    this.#done[this.#index] = Math.max(this.#done[this.#index] ?? 0, before);
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
}

/** The median, the lower middle value of an even number; undefined of none. */
function medianOf(values: readonly number[]): number | undefined {
  return values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)];
}

/** How long a run will take, before it begins. */
export interface TimeForecast {
  readonly seconds: number;
  /** Whether the pace of the denoiser was measured on this device; else it is what is usual. */
  readonly measured: boolean;
}

/**
 * Adds up all stages of a run.
 *
 * @param decodeFactor work of the decode as a multiple of that of whole frames
 */
export function forecastTime(
  stages: readonly Stage[],
  remembered: Paces,
  decodeFactor = 1,
): TimeForecast {
  const estimator = new RunEstimator({ stages, remembered, now: () => 0 });
  estimator.decodeFactor(decodeFactor);
  return { seconds: estimator.secondsLeft(), measured: estimator.isMeasured };
}

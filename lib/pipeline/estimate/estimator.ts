import type { ProgressEvent } from '../../contract';
import { type Cost, type Stage, sum } from './stages';

/** The time of work on a device with a model, as a multiple of the seconds of a usual device of its class. */
export type Paces = Partial<Record<Cost, number>>;

/** A stage, and how many of its pieces are done. */
type RunStage = Stage & { done: number };

/** Least share of a stage that is measured: a decoder hands out four frames at a time. */
const leastShare = 1 / 32;
/** Measured pieces of which the median is taken: a few, so that a device that becomes slower is seen. */
const latest = 5;

/**
 * One estimate over all phases of a run. Which work is done follows from the events of the engine; what is
 * ahead is counted work (`Stage.pieces`) times a pace: the median of what this run has measured, else what an
 * earlier run has, else that of a usual device. Between events it moves with the clock.
 */
export class RunEstimator {
  /** Work of the decode as a multiple of that of whole frames. */
  decodeWork = 1;
  readonly #stages: RunStage[];
  /** A measurement: the seconds that work took, and those that are usual. */
  readonly #measured: { readonly cost: Cost; readonly seconds: number; readonly usual: number }[] =
    [];
  /** Index of the stage that is under way, −1 before the first; and when it was last measured. */
  #index = -1;
  #at: number;
  #share = 0;

  /**
   * @param stages in order; see `stagesOf`
   * @param known paces that were measured before the run
   * @param finishing whether the user asked to finish early: later clips and steps are then left out
   * @param now seconds; for tests
   */
  constructor(
    stages: readonly Stage[],
    readonly known: Paces,
    readonly finishing: () => boolean = () => false,
    readonly now: () => number = () => performance.now() / 1000,
  ) {
    this.#stages = stages.map((stage) => ({ ...stage, done: 0 }));
    this.#at = now();
  }

  /** Applies an event of the run. */
  take(event: ProgressEvent): void {
    if (event.type === 'phase') this.#enter(event.phase, event.clip);
    else if (event.type === 'plan') this.decodeWork = event.decodeWork;
    else if (event.type === 'checkpoint') {
      const { clip, step } = event.checkpoint;
      for (const stage of this.#stages.filter(({ phase }) => phase === 'denoise')) {
        const reached = stage.clip < clip ? stage.pieces.length : stage.clip === clip ? step : 0;
        // If it is ahead of this run's own work, an earlier run has done the difference.
        stage.done = Math.max(stage.done, reached);
      }
    } else if (this.#present) this.#reach(doneAfter(event, this.#present));
  }

  /** The share of the expected time that has passed, which never falls. */
  current(): { readonly share: number; readonly secondsRemaining: number } {
    const secondsRemaining = this.secondsLeft();
    const whole = sum(this.#stages.map((stage) => this.#secondsOf(stage, 0)));
    this.#share = Math.max(this.#share, 1 - secondsRemaining / whole);
    return { share: this.#share, secondsRemaining };
  }

  /** Seconds until the run ends. */
  secondsLeft(): number {
    const finishing = this.finishing();
    const present = this.#present;
    const left = this.#stages.slice(Math.max(0, this.#index)).map((stage) => {
      // The piece under way is finished in any case.
      const next = stage === present ? Math.floor(stage.done) + 1 : stage.done;
      const piece = Math.max(0, this.#secondsOf(stage, stage.done, next) - this.#passed);
      const later = stage.phase === 'denoise' || stage.clip > (present?.clip ?? 0);
      return piece + (finishing && later ? 0 : this.#secondsOf(stage, next));
    });
    return sum(left);
  }

  /** Whether the pace of the denoiser was measured on this device; else it is what is usual. */
  get isMeasured(): boolean {
    return 'denoise' in { ...this.known, ...this.measured() };
  }

  /** Whether an earlier run has measured the denoiser, or this one more than its first step, which compiles kernels. */
  get isKnown(): boolean {
    const denoised = this.#measured.findIndex(({ cost }) => cost === 'denoise');
    return 'denoise' in this.known || (denoised >= 0 && denoised < this.#measured.length - 1);
  }

  /** The paces that this run has measured, to be remembered: of whole stages, with the kernels that are compiled. */
  measured(): Paces {
    const paces = this.#measured.map(({ cost }) => {
      const pieces = this.#measured.filter((piece) => piece.cost === cost);
      const seconds = sum(pieces.map((piece) => piece.seconds));
      return [cost, seconds / sum(pieces.map(({ usual }) => usual))];
    });
    return Object.fromEntries(paces);
  }

  get #present(): RunStage | undefined {
    return this.#stages[this.#index];
  }

  /** Seconds since the last measurement. */
  get #passed(): number {
    return this.now() - this.#at;
  }

  /** Usual seconds of pieces, or of parts of them. */
  #usualOf({ phase, pieces }: Stage, from: number, to = pieces.length): number {
    const overlap = (i: number) => Math.max(0, Math.min(i + 1, to) - Math.max(i, from));
    const seconds = sum(pieces.map((piece, i) => piece * overlap(i)));
    return phase === 'decode' ? this.decodeWork * seconds : seconds;
  }

  #secondsOf(stage: Stage, from: number, to?: number): number {
    return this.#paceOf(stage.cost) * this.#usualOf(stage, from, to);
  }

  #paceOf(cost: Cost): number {
    const measured = this.#measured.filter((piece) => piece.cost === cost);
    // The first one has the kernels in it that are compiled.
    const [first, ...paces] = measured.map(({ seconds, usual }) => seconds / usual);
    const sorted = paces.slice(-latest).sort((a, b) => a - b);
    const known = sorted[Math.floor((sorted.length - 1) / 2)] ?? this.known[cost] ?? first;
    if (known !== undefined) return known;
    // Until anything was decoded, a decode is as much slower than usual as denoising is.
    const pace = cost === 'decode' || cost === 'tiny-decode' ? this.#paceOf('denoise') : 1;
    const present = this.#present;
    if (present?.cost !== cost) return pace;
    // A first piece that takes longer than expected tells of the others.
    const usual = this.#usualOf(present, present.done, Math.floor(present.done) + 1);
    return usual > 0 ? Math.max(pace, this.#passed / usual) : pace;
  }

  #enter(phase: Stage['phase'], clip: number): void {
    const matches = (stage: Stage) => stage.phase === phase && stage.clip === clip;
    const ahead = this.#stages.findIndex((stage, i) => i > this.#index && matches(stage));
    // After the memory ran out, weights are loaded again.
    const next = ahead < 0 ? this.#stages.findLastIndex(matches) : ahead;
    if (next < 0 || next === this.#index) return;
    const present = this.#present;
    // Work without an event is done now; a denoising or a decode that ended before was cut short.
    const cut = present?.phase === 'denoise' || present?.phase === 'decode';
    if (present && ahead >= 0 && !cut) this.#reach(present.pieces.length);
    for (const stage of this.#stages.slice(0, next)) stage.done = stage.pieces.length;
    this.#index = next;
    if (ahead < 0 && this.#present) this.#present.done = 0;
    this.#at = this.now();
  }

  /** Notes how many pieces of the current stage are done, and measures those since the last measurement. */
  #reach(done: number): void {
    const stage = this.#present;
    if (!stage) return;
    const { length } = stage.pieces;
    // A decode that begins again has done less than before.
    const least = Math.min(leastShare * length, 1, length - stage.done);
    if (done >= stage.done && done - stage.done < least) return;
    const usual = this.#usualOf(stage, stage.done, done);
    if (usual > 0) this.#measured.push({ cost: stage.cost, seconds: this.#passed, usual });
    stage.done = done;
    this.#at = this.now();
  }
}

/** How many pieces of a stage are done with an event. */
function doneAfter(event: ProgressEvent, stage: RunStage): number {
  const { phase, pieces, done, frames, framesBefore } = stage;
  const piecesIn = (share: number) => Math.min(1, share) * pieces.length;
  if (event.type === 'step') return event.step;
  // Frames that were decoded in tiles are handed out at the end.
  if (event.type === 'frame')
    return Math.max(done, piecesIn((event.frame - framesBefore) / frames));
  if (event.type === 'tile') {
    return piecesIn((event.tile - 1 + event.frame / event.frames) / event.tiles);
  }
  if (event.type === 'check') return piecesIn(event.done / event.total);
  // Weights that are read while denoising are no phase of their own.
  const reads = event.type === 'bytes' && (phase === 'text' || phase === 'load');
  return reads ? piecesIn(event.bytesDone / event.bytesTotal) : done;
}

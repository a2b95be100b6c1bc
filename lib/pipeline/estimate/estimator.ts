import type { ProgressEvent } from '../../contract';
import { type Cost, type Stage, sum } from './stages';

/** What work takes on a device with a model, as a multiple of the seconds of a usual device of its class. */
export type Paces = Partial<Record<Cost, number>>;

/** Least share of a stage that is measured as one piece: a decoder hands out four frames at a time. */
const leastPiece = 1 / 32;
/** Pieces of which the median is taken: a few, so that a device that becomes slower is seen. */
const latest = 5;

/** Something that was measured: the seconds that it took, and those that are usual. */
interface Piece {
  readonly seconds: number;
  readonly usual: number;
}

/**
 * One estimate over all phases of a run. Which work is done follows from the events of the engine; what is
 * ahead is counted work (`Stage.seconds`) times a pace: the median of what this run has measured, else what an
 * earlier run has, else that of a usual device. Between events it moves with the clock.
 */
export class RunEstimator {
  /** Work of the decode as a multiple of that of whole frames. */
  decodeWork = 1;
  /** With the share of each that is done. */
  readonly #stages: (Stage & { done: number })[];
  readonly #pieces = new Map<Cost, readonly Piece[]>();
  /** Index of the stage that is under way, −1 before the first; and when it was last measured. */
  #index = -1;
  #at: number;
  #pausedAt: number | null = null;
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
    switch (event.type) {
      case 'phase':
        this.#enter(event.phase, event.clip);
        break;
      case 'plan':
        this.decodeWork = event.decodeWork;
        break;
      case 'paused':
        if (!event.paused) this.#at += this.now() - (this.#pausedAt ?? this.now());
        this.#pausedAt = event.paused ? (this.#pausedAt ?? this.now()) : null;
        break;
      case 'checkpoint':
        for (const stage of this.#stages) {
          const { clip, step } = event.checkpoint;
          const reached = stage.clip < clip ? 1 : stage.clip === clip ? stage.marks[step - 1] : 0;
          // Where it is ahead of what this run has done, an earlier run has done the difference.
          if (stage.phase === 'denoise') stage.done = Math.max(stage.done, reached ?? 0);
        }
        break;
      case 'step':
        this.#reach(['denoise'], ({ marks }) => marks[event.step - 1] ?? 1);
        break;
      case 'frame': {
        const earlier = sum(this.#stages.slice(0, this.#index).map(({ frames }) => frames));
        // Frames that were decoded in tiles are handed out at the end.
        this.#reach(['decode'], ({ done, frames }) =>
          Math.max(done, (event.frame - earlier) / frames),
        );
        break;
      }
      case 'tile':
        this.#reach(['decode'], () => (event.tile - 1 + event.frame / event.frames) / event.tiles);
        break;
      case 'bytes':
        this.#reach(['text', 'load'], () => event.bytesDone / event.bytesTotal);
        break;
      case 'check':
        this.#reach(['check'], () => event.done / event.total);
        break;
    }
  }

  /** What is to be said now: the share of the expected time that has passed, which never falls. */
  current(): { readonly share: number; readonly secondsRemaining: number } {
    const secondsRemaining = this.secondsLeft();
    const whole = sum(this.#stages.map((stage) => this.#workOf(stage) * this.#paceOf(stage.cost)));
    this.#share = Math.max(this.#share, 1 - secondsRemaining / whole);
    return { share: this.#share, secondsRemaining };
  }

  /** Seconds until the run ends. */
  secondsLeft(): number {
    const finishing = this.finishing();
    const present = this.#stages[this.#index];
    const left = this.#stages.slice(Math.max(0, this.#index)).map((stage) => {
      const whole = this.#workOf(stage) * this.#paceOf(stage.cost);
      const ofRun = stage.phase === 'check' || stage.phase === 'finish';
      const leftOut = finishing && !ofRun && stage.clip !== (present?.clip ?? 0);
      if (stage !== present) {
        return leftOut || (finishing && stage.phase === 'denoise') ? 0 : (1 - stage.done) * whole;
      }
      const end = endOfPiece(stage);
      const later = finishing && stage.phase === 'denoise' ? 0 : 1 - end;
      return Math.max(0, (end - stage.done) * whole - this.#passed) + later * whole;
    });
    return sum(left);
  }

  /** Whether the pace of the denoiser was measured on this device; else it is what is usual. */
  get isMeasured(): boolean {
    return this.known.denoise !== undefined || this.#pieces.has('denoise');
  }

  /** The paces that this run has measured, to be remembered: of whole stages, with the kernels that are compiled. */
  measured(): Paces {
    const mean = (pieces: readonly Piece[]) =>
      sum(pieces.map(({ seconds }) => seconds)) / sum(pieces.map(({ usual }) => usual));
    return Object.fromEntries([...this.#pieces].map(([cost, pieces]) => [cost, mean(pieces)]));
  }

  /** Seconds since the last measurement. */
  get #passed(): number {
    return (this.#pausedAt ?? this.now()) - this.#at;
  }

  #workOf({ phase, seconds }: Stage): number {
    return phase === 'decode' ? this.decodeWork * seconds : seconds;
  }

  #paceOf(cost: Cost): number {
    // The first piece has the kernels in it that are compiled.
    const [first, ...pieces] = (this.#pieces.get(cost) ?? []).map((of) => of.seconds / of.usual);
    const sorted = pieces.slice(-latest).sort((a, b) => a - b);
    const known = sorted[Math.floor((sorted.length - 1) / 2)] ?? this.known[cost] ?? first;
    if (known !== undefined) return known;
    // Until anything was decoded, a decode is as much slower than usual as denoising is.
    const pace = cost === 'decode' || cost === 'tiny-decode' ? this.#paceOf('denoise') : 1;
    const present = this.#stages[this.#index];
    if (present?.cost !== cost) return pace;
    // A first piece that takes longer than expected tells of the others.
    const usual = (endOfPiece(present) - present.done) * this.#workOf(present);
    return usual > 0 ? Math.max(pace, this.#passed / usual) : pace;
  }

  #enter(phase: Stage['phase'], clip: number): void {
    const matches = (stage: Stage) => stage.phase === phase && stage.clip === clip;
    const ahead = this.#stages.findIndex((stage, i) => i > this.#index && matches(stage));
    // After the memory ran out, weights are loaded again.
    const next = ahead < 0 ? this.#stages.findLastIndex(matches) : ahead;
    if (next < 0 || next === this.#index) return;
    // What no event told of is done now; a denoising or a decode that ended before was cut short.
    if (ahead >= 0) this.#reach(['optimise', 'load', 'text', 'image', 'check'], () => 1);
    for (const [i, stage] of this.#stages.entries()) {
      if (i < next) stage.done = 1;
      else if (i === next && ahead < 0) stage.done = 0;
    }
    this.#index = next;
    this.#at = this.now();
  }

  /** The stage under way, if it is of these phases, is done up to a share: what was done since the last piece is one. */
  #reach(phases: readonly Stage['phase'][], shareOf: (stage: Stage & { done: number }) => number) {
    const stage = this.#stages[this.#index];
    if (!stage || !phases.includes(stage.phase)) return;
    const share = Math.min(1, shareOf(stage));
    const progress = share - stage.done;
    // A decode that begins again has done less than before.
    if (progress >= 0 && progress < Math.min(leastPiece, endOfPiece(stage) - stage.done)) return;
    const piece = { seconds: this.#passed, usual: progress * this.#workOf(stage) };
    const earlier = this.#pieces.get(stage.cost) ?? [];
    if (progress > 0) this.#pieces.set(stage.cost, [...earlier, piece]);
    stage.done = share;
    this.#at = this.now();
  }
}

/** Share of a stage that is done when its step under way ends. */
function endOfPiece({ marks, done }: Stage & { readonly done: number }): number {
  return marks.find((mark) => mark > done + 1e-9) ?? 1;
}

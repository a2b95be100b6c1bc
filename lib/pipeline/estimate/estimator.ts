import type { ProgressEvent } from '../../contract';
import { type Cost, type Stage, sum } from './stages';

/** What work takes on a device with a model, as a multiple of the seconds of a usual device of its class. */
export type Paces = Partial<Record<Cost, number>>;

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
  /** Work of the decode as a multiple of that of whole frames. */
  decodeWork = 1;
  /** With the share of each that is done. */
  readonly #stages: (Stage & { done: number })[];
  /** What the run has measured of each cost, piece by piece: seconds that it took and that are usual. */
  readonly #measured = new Map<Cost, { readonly seconds: number; readonly usual: number }[]>();
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

  /** Applies an event of the run. @returns whether it tells how far the run is */
  take(event: ProgressEvent): boolean {
    const stage = this.#stages[this.#index];
    const isIn = (...phases: Stage['phase'][]) =>
      stage !== undefined && phases.includes(stage.phase);
    switch (event.type) {
      case 'phase':
        return this.#enter(event.phase, event.clip);
      case 'plan':
        this.decodeWork = event.decodeWork;
        return true;
      case 'paused':
        if (!event.paused) this.#at += this.now() - (this.#pausedAt ?? this.now());
        this.#pausedAt = event.paused ? (this.#pausedAt ?? this.now()) : null;
        return true;
      case 'checkpoint':
        // Where it is ahead of what this run has done, an earlier run has done the difference.
        for (const each of this.#stages) {
          const { clip, step } = event.checkpoint;
          if (each.phase !== 'denoise' || each.clip > clip) continue;
          each.done = Math.max(each.done, each.clip < clip ? 1 : shareOfSteps(each, step));
        }
        return true;
      case 'step':
        if (!stage || !isIn('denoise')) return false;
        // Steps that were not reported are of an earlier run.
        stage.done = Math.max(stage.done, shareOfSteps(stage, event.step - 1));
        return this.#measure(shareOfSteps(stage, event.step));
      case 'frame': {
        if (!stage || !isIn('decode')) return false;
        const earlier = sum(this.#stages.slice(0, this.#index).map(({ frames = 0 }) => frames));
        // Frames that were decoded in tiles are handed out at the end.
        return this.#reach(Math.max(stage.done, (event.frame - earlier) / (stage.frames ?? 1)));
      }
      case 'tile': {
        const { tile, tiles, frame, frames } = event;
        return isIn('decode') && this.#reach((tile - 1 + frame / frames) / tiles);
      }
      case 'bytes':
        return isIn('text', 'load') && this.#reach(event.bytesDone / event.bytesTotal);
      case 'check':
        return isIn('check') && this.#reach(event.done / event.total);
      default:
        return false;
    }
  }

  /** What is to be said now: the share of the expected time that has passed, which never falls. */
  current(): { readonly share: number; readonly secondsRemaining: number } {
    const secondsRemaining = this.secondsLeft();
    const whole = sum(this.#stages.map((stage) => this.#secondsOf(stage)));
    this.#share = Math.max(this.#share, 1 - secondsRemaining / whole);
    return { share: this.#share, secondsRemaining };
  }

  /** Seconds until the run ends. */
  secondsLeft(): number {
    const finishing = this.finishing();
    const present = this.#stages[this.#index];
    const ahead = this.#stages.slice(this.#index + 1).filter(({ phase, clip }) => {
      const ofRun = phase === 'check' || phase === 'finish';
      return !finishing || ofRun || (phase !== 'denoise' && clip === (present?.clip ?? 0));
    });
    const seconds = sum(ahead.map((stage) => (1 - stage.done) * this.#secondsOf(stage)));
    if (!present) return seconds;
    const [next, whole] = [nextPiece(present, this.#measured), this.#secondsOf(present)];
    const later = finishing && present.phase === 'denoise' ? 0 : 1 - present.done - next;
    return seconds + Math.max(0, next * whole - this.#passed) + later * whole;
  }

  /** Whether the pace of the denoiser was measured on this device; else it is what is usual. */
  get isMeasured(): boolean {
    return this.known.denoise !== undefined || this.#measured.has('denoise');
  }

  /** The paces that this run has measured, to be remembered: of whole stages, with the kernels that are compiled. */
  measured(): Paces {
    const mean = (pieces: readonly { readonly seconds: number; readonly usual: number }[]) =>
      sum(pieces.map(({ seconds }) => seconds)) / sum(pieces.map(({ usual }) => usual));
    return Object.fromEntries([...this.#measured].map(([cost, pieces]) => [cost, mean(pieces)]));
  }

  /** Seconds since the last measurement. */
  get #passed(): number {
    return (this.#pausedAt ?? this.now()) - this.#at;
  }

  /** Expected seconds of a whole stage. */
  #secondsOf(stage: Stage): number {
    return this.#workOf(stage) * this.#paceOf(stage.cost);
  }

  #workOf({ phase, seconds }: Stage): number {
    return phase === 'decode' ? this.decodeWork * seconds : seconds;
  }

  #paceOf(cost: Cost): number {
    // The first piece has the kernels in it that are compiled.
    const [first, ...pieces] = (this.#measured.get(cost) ?? []).map((of) => of.seconds / of.usual);
    const sorted = pieces.slice(-latest).sort((a, b) => a - b);
    const known = sorted[Math.floor((sorted.length - 1) / 2)] ?? this.known[cost] ?? first;
    if (known !== undefined) return known;
    // Until anything was decoded, a decode is as much slower than usual as denoising is.
    const pace = cost === 'decode' || cost === 'tiny-decode' ? this.#paceOf('denoise') : 1;
    const present = this.#stages[this.#index];
    if (present?.cost !== cost) return pace;
    // A first piece that takes longer than expected tells of the others.
    const usual = nextPiece(present, this.#measured) * this.#workOf(present);
    return usual > 0 ? Math.max(pace, this.#passed / usual) : pace;
  }

  #enter(phase: Stage['phase'], clip: number): boolean {
    const matches = (stage: Stage) => stage.phase === phase && stage.clip === clip;
    const ahead = this.#stages.findIndex((stage, i) => i > this.#index && matches(stage));
    // After the memory ran out, weights are loaded again.
    const next = ahead < 0 ? this.#stages.findLastIndex(matches) : ahead;
    if (next < 0 || next === this.#index) return false;
    const present = this.#stages[this.#index];
    // What no event told of is done now; a denoising or a decode that ended before was cut short.
    if (present && ahead >= 0 && !present.steps && !present.frames) this.#measure(1);
    for (const [i, stage] of this.#stages.entries()) {
      if (i < next) stage.done = 1;
      else if (i === next && ahead < 0) stage.done = 0;
    }
    this.#index = next;
    this.#at = this.now();
    return true;
  }

  /** The stage is done up to this share. A decode that begins again has done less than before. */
  #reach(share: number): boolean {
    const done = this.#stages[this.#index]?.done ?? 0;
    const isPiece = share < done || share >= 1 || share - done >= leastPiece;
    return isPiece ? this.#measure(Math.min(1, share)) : true;
  }

  /** Measures what was done since the last time. */
  #measure(share: number): true {
    const stage = this.#stages[this.#index];
    if (!stage) return true;
    const usual = (share - stage.done) * this.#workOf(stage);
    const earlier = this.#measured.get(stage.cost) ?? [];
    if (usual > 0) this.#measured.set(stage.cost, [...earlier, { seconds: this.#passed, usual }]);
    stage.done = share;
    this.#at = this.now();
    return true;
  }
}

/** Share of a stage that is done after so many of its steps. */
function shareOfSteps({ steps = [] }: Stage, done: number): number {
  return sum(steps.slice(0, done));
}

/** Share of a stage under way that is done before its next measurement. */
function nextPiece(
  { steps = [], cost, done }: Stage & { readonly done: number },
  measured: ReadonlyMap<Cost, unknown>,
): number {
  let reached = 0;
  for (const step of steps) {
    if (reached > done - 1e-9) return step;
    reached += step;
  }
  return measured.has(cost) ? Math.min(leastPiece, 1 - done) : 1 - done;
}

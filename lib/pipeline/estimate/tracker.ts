import type { ProgressEvent } from '../../contract';
import { type Pace, paceAfter, paceOf, secondsFor } from './pace';
import type { Rate, Rates, UsualRate } from './rates';
import { type Cost, isDecode, type Stage, shareOfSteps, type Work } from './work';

type EventOf<Type extends ProgressEvent['type']> = Extract<ProgressEvent, { type: Type }>;

/**
 * Follows a run by the events of the engine: which work of which stage is done, and how fast that goes.
 */
export class RunTracker {
  /** Share of each stage's works that is done. */
  readonly done: number[][];
  readonly paces: Record<Cost, Pace>;
  /** Of a device of this class, with this model. */
  readonly #usual: Readonly<Record<Cost, Rate>>;
  /** Index of the stage that is under way; −1 before the first. */
  index = -1;
  /** What a decode takes, as a multiple of that of whole frames. */
  decodeFactor = 1;
  /** When work was last reported, and what share of its stage it was. */
  at: number;
  lastShare = 0;
  /** Seconds of pauses. */
  paused = 0;
  pausedAt: number | null = null;
  /** Seconds of work that an earlier run of the same video has done. */
  before = 0;
  #encodedSeconds = 0;
  #tiled = false;

  constructor(
    readonly stages: readonly Stage[],
    usual: Readonly<Record<Cost, UsualRate>>,
    remembered: Rates,
    readonly now: () => number,
  ) {
    this.done = stages.map(({ work }) => work.map(() => 0));
    const costs = Object.keys(usual) as Cost[];
    const byCost = <T>(of: (cost: Cost) => T) =>
      Object.fromEntries(costs.map((cost) => [cost, of(cost)])) as Record<Cost, T>;
    this.#usual = byCost((cost) => withCalls(usual[cost], cost, stages));
    this.paces = byCost((cost) => {
      const known = remembered[cost];
      return paceOf(known ?? this.#usual[cost], known !== undefined);
    });
    this.at = now();
  }

  get stage(): Stage | undefined {
    return this.stages[this.index];
  }

  /** @returns whether the event tells how far the run is */
  take(event: ProgressEvent): boolean {
    const phase = this.stage?.phase;
    switch (event.type) {
      case 'phase':
        return this.#enter(event);
      case 'bytes':
        return (phase === 'text' || phase === 'load') && this.#onBytes(event);
      case 'step':
        return phase === 'denoise' && this.#onStep(event);
      case 'tile':
        return phase === 'decode' && this.#onTile(event);
      case 'frame':
        return phase === 'decode' && this.#onFrame(event);
      case 'check':
        return phase === 'check' && this.#reach(event.done / event.total);
      case 'checkpoint':
        return this.#onCheckpoint(event);
      case 'paused':
        return this.#pause(event.paused);
      default:
        return event.type === 'plan';
    }
  }

  /** A frame was scaled and encoded in so many seconds; call it before the frame's event. */
  encoded(seconds: number): void {
    this.#encodedSeconds += seconds;
  }

  /** Until anything was decoded, a decode is as much faster than usual as denoising was. */
  paceOf(cost: Cost): Pace {
    const pace = this.paces[cost];
    const { denoise } = this.paces;
    if (!isDecode(cost) || pace.known || !denoise.known) return pace;
    const perUnit = this.#usual[cost].perUnit * (denoise.perUnit / this.#usual.denoise.perUnit);
    return { ...pace, known: true, perUnit };
  }

  totalOf({ cost, total }: Work): number {
    return isDecode(cost) ? this.decodeFactor * total : total;
  }

  /**
   * Seconds that what is left of a stage takes.
   *
   * @param started costs whose startup is over; is added to
   * @param from index of the first of its works that counts
   */
  secondsOf(index: number, started: Set<Cost>, from = 0): number {
    const works = this.stages[index]?.work ?? [];
    let seconds = 0;
    for (const [i, work] of works.entries()) {
      if (i < from) continue;
      const left = this.totalOf(work) * (1 - (this.done[index]?.[i] ?? 0));
      const pace = this.paceOf(work.cost);
      if (left === 0) continue;
      seconds += started.has(work.cost) ? pace.perUnit * left : secondsFor(pace, left);
      started.add(work.cost);
    }
    return seconds;
  }

  #enter({ phase, clip }: EventOf<'phase'>): boolean {
    const opened = this.stages.findIndex((stage) => stage.phase === 'open');
    const opens = phase === 'load' && this.index < opened;
    const next = opens
      ? opened
      : this.stages.findIndex((stage) => stage.phase === phase && stage.clip === clip);
    if (next < 0 || next === this.index) return false;
    if (next > this.index) this.#leave();
    for (let skipped = this.index + 1; skipped < next; skipped++) this.#skip(skipped);
    // After the memory ran out, weights are loaded again.
    if (next < this.index) this.done[next] = [0];
    this.index = next;
    this.at = this.now();
    [this.lastShare, this.#encodedSeconds, this.#tiled] = [0, 0, false];
    return true;
  }

  /** What no event told of is done now; a denoising or a decode that ended before was cut short. */
  #leave(): void {
    const { stage } = this;
    if (!stage) return;
    if (stage.phase !== 'denoise' && stage.phase !== 'decode') this.#reach(1);
    this.done[this.index] = stage.work.map(() => 1);
  }

  /** An earlier run has done this stage, or this run does without it. */
  #skip(index: number): void {
    this.before += this.secondsOf(index, new Set());
    this.done[index] = (this.done[index] ?? []).map(() => 1);
  }

  get #doneNow(): number[] {
    return this.done[this.index] ?? [];
  }

  /** The first work of the stage is done up to this share. @param from what was done before */
  #reach(share: number, from = this.#doneNow[0] ?? 0): boolean {
    const now = this.now();
    const seconds = Math.max(0, now - this.at - this.#encodedSeconds);
    this.at = now;
    this.#encodedSeconds = 0;
    const [work] = this.stage?.work ?? [];
    if (!work || !(share >= 0)) return false;
    this.#doneNow[0] = share;
    // A decode that begins again has done less than before.
    if (share <= from) return false;
    this.lastShare = share - from;
    this.#measure(work, share - from, seconds);
    return true;
  }

  #measure(work: Work, share: number, seconds: number): void {
    const total = this.totalOf(work);
    if (total === 0) return;
    const done = { work: share * total, seconds };
    this.paces[work.cost] = paceAfter(this.paceOf(work.cost), done, total);
  }

  #onBytes({ bytesDone, bytesTotal }: EventOf<'bytes'>): boolean {
    return this.#reach(Math.min(1, bytesDone / bytesTotal));
  }

  #onStep({ step }: EventOf<'step'>): boolean {
    const [work] = this.stage?.work ?? [];
    if (!work) return false;
    const from = shareOfSteps(work, step - 1);
    const done = this.#doneNow[0] ?? 0;
    // Steps that were not reported are of an earlier run.
    if (from > done) this.before += this.paces.denoise.perUnit * work.total * (from - done);
    return this.#reach(shareOfSteps(work, step), from);
  }

  /** Where it is ahead of what this run has done, an earlier run has done the difference. */
  #onCheckpoint({ checkpoint: { clip, step } }: EventOf<'checkpoint'>): boolean {
    for (const [index, stage] of this.stages.entries()) {
      const [work] = stage.work;
      if (stage.phase !== 'denoise' || !work || stage.clip > clip) continue;
      const share = stage.clip < clip ? 1 : shareOfSteps(work, step);
      const more = share - (this.done[index]?.[0] ?? 0);
      if (more <= 0) continue;
      this.before += this.paces.denoise.perUnit * work.total * more;
      this.done[index] = [share];
    }
    return true;
  }

  #onTile({ tile, tiles, frame, frames }: EventOf<'tile'>): boolean {
    this.#tiled = true;
    return this.#reach((tile - 1 + frame / frames) / tiles);
  }

  #onFrame({ frame }: EventOf<'frame'>): boolean {
    const [, encoding] = this.stage?.work ?? [];
    const earlier = this.stages.slice(0, this.index).reduce((n, { frames = 0 }) => n + frames, 0);
    const share = Math.min(1, (frame - earlier) / (this.stage?.frames ?? 1));
    const from = this.#doneNow[1] ?? 0;
    if (encoding && share > from) this.#measure(encoding, share - from, this.#encodedSeconds);
    this.#doneNow[1] = share;
    if (!this.#tiled) return this.#reach(share);
    this.at = this.now();
    this.#encodedSeconds = 0;
    return true;
  }

  #pause(paused: boolean): boolean {
    const now = this.now();
    if (paused) this.pausedAt ??= now;
    else if (this.pausedAt !== null) {
      this.paused += now - this.pausedAt;
      this.at += now - this.pausedAt;
      this.pausedAt = null;
    }
    return true;
  }
}

/** A rate that has the calls of all work of its cost in its units. */
function withCalls(
  { perUnit, startup, perCall = 0 }: UsualRate,
  cost: Cost,
  stages: readonly Stage[],
): Rate {
  const works = stages.flatMap(({ work }) => work.filter((one) => one.cost === cost));
  const units = works.reduce((sum, { total }) => sum + total, 0);
  const called = works.reduce((sum, { calls = 0 }) => sum + calls, 0);
  return { startup, perUnit: perUnit + (units > 0 ? (perCall * called) / units : 0) };
}

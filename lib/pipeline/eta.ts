/** Scaling a frame to 720p and encoding it, on a common CPU. */
const outputSecondsPerFrame = 0.03;

/**
 * Estimates how long a run still takes. Steps dominate; until a clip has been decoded, its decoding is
 * taken as 3.9 transformer passes, the ratio of their FLOPs (reference `wan22-ti2v-5b.md` §0.5), and
 * the time that the frames take on the CPU.
 */
export class Pace {
  readonly #stepSeconds: number[] = [];
  /** What the last clip's decode took. */
  #decodeSeconds: number | null = null;
  #decodeBegin = 0;
  #lastStep = 0;
  /** What a decode in tiles costs as a multiple of one of whole frames. */
  decodeWork = 1;

  constructor(
    readonly steps: number,
    readonly clips: number,
    readonly framesPerClip: number,
    /** Transformer passes per step: 2 with guidance. */
    readonly passesPerStep: number,
    readonly now: () => number = () => performance.now() / 1000,
  ) {}

  /** Call before the first step of a clip and after a pause. */
  start(): void {
    this.#lastStep = this.now();
  }

  /** Call after each step. */
  step(): void {
    const now = this.now();
    this.#stepSeconds.push(now - this.#lastStep);
    this.#lastStep = now;
  }

  /** Call when the decode of a clip begins, or begins again. */
  startDecode(): void {
    this.#decodeBegin = this.now();
  }

  /** Call after a clip was decoded. */
  endDecode(): void {
    this.#decodeSeconds = this.now() - this.#decodeBegin;
  }

  /**
   * Seconds to the end while clip `clip` is decoded; null where later clips cannot be told.
   *
   * @param share of this decode that is done, over 0 to 1
   */
  decoding(clip: number, share: number): number | null {
    const seconds = (this.now() - this.#decodeBegin) / share;
    const later = this.clips - 1 - clip;
    if (later > 0 && this.#stepSeconds.length < 2) return null;
    return seconds * (1 - share) + later * (this.steps * this.secondsPerStep + seconds);
  }

  /** Median over the run; 0 before the first step. */
  get secondsPerStep(): number {
    const sorted = [...this.#stepSeconds].sort((a, b) => a - b);
    return sorted[Math.floor(sorted.length / 2)] ?? 0;
  }

  /** Seconds to the end after `stepsDone` steps of clip `clip`; null until two steps are done. */
  remaining(clip: number, stepsDone: number): number | null {
    if (this.#stepSeconds.length < 2) return null;
    const perStep = this.secondsPerStep;
    const stepsLeft = this.steps - stepsDone + this.steps * (this.clips - 1 - clip);
    const decode =
      this.#decodeSeconds ??
      (this.decodeWork * 3.9 * perStep) / this.passesPerStep +
        outputSecondsPerFrame * this.framesPerClip;
    return stepsLeft * perStep + decode * (this.clips - clip);
  }
}

/** Scaling a frame to 720p and encoding it, on a common CPU. */
const outputSecondsPerFrame = 0.03;

/** What an estimate starts from. */
export interface EtaOptions {
  readonly steps: number;
  readonly clips: number;
  readonly framesPerClip: number;
  /** Passes of the denoiser per step: 2 with guidance. */
  readonly passesPerStep: number;
  /** What a decode costs, as a multiple of one pass. */
  readonly decodePasses: number;
  /** Seconds of work after the last frame; 0 when absent. */
  readonly tailSeconds?: number;
  /** Seconds; for tests. */
  readonly now?: () => number;
}

/**
 * Estimates the time left of a run. Steps dominate; until a clip has been decoded, its decoding is
 * taken as so many passes of the denoiser as the model says, and the time that the frames take on the
 * CPU.
 */
export class EtaEstimator {
  readonly #stepSeconds: number[] = [];
  /** What the last clip's decode took. */
  #decodeSeconds: number | null = null;
  #decodeBegin = 0;
  #lastStep = 0;
  /** What a decode in tiles costs as a multiple of one of whole frames. */
  decodeWork = 1;

  readonly #options: EtaOptions;
  readonly #tailSeconds: number;
  readonly #now: () => number;

  constructor(options: EtaOptions) {
    this.#options = options;
    this.#tailSeconds = options.tailSeconds ?? 0;
    this.#now = options.now ?? (() => performance.now() / 1000);
  }

  /** Call before the first step of a clip and after a pause. */
  start(): void {
    this.#lastStep = this.#now();
  }

  /** Call after each step. */
  step(): void {
    const now = this.#now();
    this.#stepSeconds.push(now - this.#lastStep);
    this.#lastStep = now;
  }

  /** Call when the decode of a clip begins, or begins again. */
  startDecode(): void {
    this.#decodeBegin = this.#now();
  }

  /** Call after a clip was decoded. */
  endDecode(): void {
    this.#decodeSeconds = this.#now() - this.#decodeBegin;
  }

  /**
   * Seconds to the end while clip `clip` is decoded; null where later clips cannot be estimated.
   *
   * @param share of this decode that is done, over 0 to 1
   */
  decoding(clip: number, share: number): number | null {
    const seconds = (this.#now() - this.#decodeBegin) / share;
    const { steps, clips } = this.#options;
    const later = clips - 1 - clip;
    if (later > 0 && this.#stepSeconds.length < 2) return null;
    const left = seconds * (1 - share) + later * (steps * this.secondsPerStep + seconds);
    return left + this.#tailSeconds;
  }

  /** Median over the run; 0 before the first step. */
  get secondsPerStep(): number {
    const sorted = this.#stepSeconds.toSorted((a, b) => a - b);
    return sorted[Math.floor(sorted.length / 2)] ?? 0;
  }

  /** Seconds to the end after `stepsDone` steps of clip `clip`; null until two steps are done. */
  remaining(clip: number, stepsDone: number): number | null {
    if (this.#stepSeconds.length < 2) return null;
    const perStep = this.secondsPerStep;
    const { steps, clips, decodePasses, passesPerStep, framesPerClip } = this.#options;
    const stepsLeft = steps - stepsDone + steps * (clips - 1 - clip);
    const decode =
      this.#decodeSeconds ??
      (this.decodeWork * decodePasses * perStep) / passesPerStep +
        outputSecondsPerFrame * framesPerClip;
    return stepsLeft * perStep + decode * (clips - clip) + this.#tailSeconds;
  }
}

/** Scaling a frame to 720p and encoding it, on a common CPU. */
const outputSecondsPerFrame = 0.03;

/**
 * Estimates how long a run still takes. Steps dominate; until a clip has been decoded, its decoding is
 * taken as 3.9 transformer passes, the ratio of their FLOPs (reference `wan22-ti2v-5b.md` §0.5), and
 * the time that the frames take on the CPU.
 */
export class Pace {
  readonly #stepSeconds: number[] = [];
  #frameSeconds: number | null = null;
  #lastStep = 0;

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

  /** Call after a clip was decoded. */
  decoded(frames: number, seconds: number): void {
    this.#frameSeconds = seconds / frames;
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
      this.#frameSeconds !== null
        ? this.#frameSeconds * this.framesPerClip
        : (3.9 * perStep) / this.passesPerStep + outputSecondsPerFrame * this.framesPerClip;
    return stepsLeft * perStep + decode * (this.clips - clip);
  }
}

import { type KinoraError, type Safety, safetySchema, toKinoraError } from '../contract';
import type { Backend } from '../gpu';
import type { Frame } from '../pipeline/latents';
import type { Squares } from '../pipeline/vision/squares';
import type { SafetyChecker } from './checker';

/** Every so many frames one is looked at, and the last one in any case. */
const sampleStride = 8;

/** Where to compute, the best first; the next one is asked for when the one before has failed. */
export type Backends = () => AsyncIterable<Backend>;

/** What a {@link SafetyCheck} reports. */
export interface SafetyCheckHooks {
  /** A backend has failed; the next one is tried. */
  readonly onFailure?: (error: KinoraError, backend: Backend['kind'] | null) => void;
  /** Squares of the video that are done, of how many. */
  readonly onSquares?: (done: number, total: number) => void;
}

/**
 * The check of one run. It keeps the squares of frames 0, 8, 16 … and of the last one until they are scored after
 * decoding, when the device is free.
 */
export class SafetyCheck {
  readonly #kept: Squares[] = [];
  /** A copy of the latest frame that was not sampled: it may turn out to be the last one. */
  #latest: Frame | null = null;
  /** Where copies go, one over the other. */
  #copy = new Float32Array();
  #input: number | null = null;

  constructor(
    readonly checker: SafetyChecker,
    readonly hooks: SafetyCheckHooks = {},
  ) {}

  /** Takes the next frame, which is read before this returns. @param index from 0, over all clips */
  take(frame: Frame, index: number): void {
    if (index % sampleStride === 0) {
      this.#kept.push(this.checker.squaresOfFrame(frame));
      this.#latest = null;
      return;
    }
    const { data, width, height } = frame;
    if (this.#copy.length !== data.length) this.#copy = new Float32Array(data.length);
    this.#copy.set(data);
    this.#latest = { data: this.#copy, width, height };
  }

  /**
   * Scores the images of the request and keeps the highest score for the record.
   *
   * @returns null when every backend has failed
   * @throws the signal's reason
   */
  async scoreInput(
    images: readonly Squares[],
    backends: Backends,
    signal: AbortSignal,
  ): Promise<number | null> {
    const scores = await this.#score(images, backends, signal);
    this.#input = scores && Math.max(...scores);
    return this.#input;
  }

  /**
   * Scores the frames that were kept, and forgets them. A check that fails on every backend is
   * `unverified`.
   *
   * @throws the signal's reason
   */
  async verdict(backends: Backends, signal: AbortSignal): Promise<Safety> {
    if (this.#latest) this.#kept.push(this.checker.squaresOfFrame(this.#latest));
    this.#latest = null;
    this.#copy = new Float32Array();
    const kept = this.#kept.splice(0);
    const { onSquares } = this.hooks;
    const frames = kept.length > 0 ? await this.#score(kept, backends, signal, onSquares) : null;
    const score = frames && videoScore(frames);
    const { model, sha256, threshold: usual, frameThreshold = usual } = this.checker;
    const threshold = (this.#input ?? 0) >= usual ? usual : frameThreshold;
    const common = { input: this.#input, threshold, model, sha256 };
    if (!frames || score === null) {
      return safetySchema.parse({ ...common, status: 'unverified', reason: 'failed' });
    }
    const status = score >= threshold ? 'flagged' : 'clear';
    return safetySchema.parse({ ...common, status, score, frames });
  }

  /** Null when every backend has failed. */
  async #score(
    images: readonly Squares[],
    backends: Backends,
    signal: AbortSignal,
    onSquares?: SafetyCheckHooks['onSquares'],
  ): Promise<number[] | null> {
    const failed = (error: unknown, backend: Backend | null) => {
      signal.throwIfAborted();
      this.hooks.onFailure?.(toKinoraError(error), backend?.kind ?? null);
    };
    try {
      for await (const backend of backends()) {
        try {
          return await this.checker.score(backend, images, signal, onSquares);
        } catch (error) {
          failed(error, backend);
        }
      }
    } catch (error) {
      failed(error, null);
    }
    return null;
  }
}

/**
 * The score of a video: the mean of its two highest frames; of a single frame, its own. One doubtful frame
 * alone does not flag a video, one certain frame does.
 *
 * @throws TypeError without a frame
 */
export function videoScore(frames: readonly number[]): number {
  const [first, second = first] = frames.toSorted((a, b) => b - a);
  if (first === undefined || second === undefined) throw new TypeError('There is no frame.');
  return (first + second) / 2;
}

/** Indices of the frames of a video that are looked at. */
export function sampledFrames(frames: number): number[] {
  const every = Array.from(
    { length: Math.ceil(frames / sampleStride) },
    (_, i) => i * sampleStride,
  );
  return (frames - 1) % sampleStride === 0 ? every : [...every, frames - 1];
}

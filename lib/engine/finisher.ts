import type { Frame } from '../pipeline/latents';
import { FrameScaler } from '../video';
import { lanczos3 } from '../video/resample';

/** Computes frames between others. */
export interface Interpolator {
  /** The frame in the middle; the first one again where the picture changes altogether. */
  between(first: Frame, second: Frame): Promise<Frame>;
}

interface PixelSize {
  readonly width: number;
  readonly height: number;
}

/** What {@link Finisher} makes of which frames. */
export interface FinisherOptions {
  /** Of the frames that come. */
  readonly source: PixelSize;
  /** Of the video. */
  readonly target: PixelSize;
  /** Whether it is enlarged: with Lanczos-3. */
  readonly upscale: boolean;
  /** How many frames come, unless the run is finished early. */
  readonly frames: number;
  /** Whether the first frame follows the last one again. */
  readonly loop: boolean;
  /** Puts a frame between each two; null for the frames as they are. */
  readonly interpolator: Interpolator | null;
  /** Takes RGBA of the target size, in order; valid until it resolves. */
  readonly write: (pixels: Uint8ClampedArray<ArrayBuffer>) => Promise<void>;
}

/**
 * What lies between decoder and encoder: frames in between, then the size of the video in one resampling. Frames go
 * through one by one; at most two are kept.
 */
export class Finisher {
  readonly #scaler: FrameScaler;
  #first: Frame | null = null;
  #latest: Frame | null = null;
  #taken = 0;
  #written = 0;

  constructor(readonly options: FinisherOptions) {
    const { source, target, upscale } = options;
    this.#scaler = new FrameScaler(source, target, upscale ? lanczos3 : undefined);
  }

  /** Takes the next frame, which is read before this resolves. */
  async add(frame: Frame): Promise<void> {
    const { interpolator, loop } = this.options;
    this.#taken += 1;
    if (interpolator) {
      if (this.#latest) await this.#write(await interpolator.between(this.#latest, frame));
      if (loop) this.#first ??= copyOf(frame);
      this.#latest = copyOf(frame, this.#latest?.data);
    }
    await this.#write(frame);
  }

  /** After the last frame. @returns frames that were written */
  async end(): Promise<number> {
    const { interpolator, loop, frames } = this.options;
    const [first, latest] = [this.#first, this.#latest];
    // A loop that was finished early does not close.
    const closes = loop && this.#taken === frames;
    if (interpolator && first && latest && closes) {
      await this.#write(await interpolator.between(latest, first));
    }
    return this.#written;
  }

  async #write({ data }: Frame): Promise<void> {
    await this.options.write(this.#scaler.scale(data));
    this.#written += 1;
  }
}

/** @param into takes the values; a new array when absent */
function copyOf(frame: Frame, into: Float32Array = new Float32Array(frame.data.length)): Frame {
  into.set(frame.data);
  return { ...frame, data: into };
}

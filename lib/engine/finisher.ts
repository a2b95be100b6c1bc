import { type Finishing, KinoraError, type PixelSize, toKinoraError } from '../contract';
import { type Interpolator, openInterpolator } from '../finishing/rife/interpolator';
import type { Backend } from '../gpu';
import type { Frame } from '../pipeline/latents';
import { FrameScaler } from '../video';
import { lanczos3 } from '../video/resample';
import type { EngineTools } from './tools';

/**
 * Opens the network that a request needs to finish its video; null where it needs none. Nothing is on the device before
 * its first frame.
 *
 * @throws KinoraError `MODEL_NOT_INSTALLED` where it was not downloaded, and of its file
 */
export async function openFinisher(
  { smooth }: Finishing,
  { finisher }: Pick<EngineTools, 'finisher'>,
  openBackend: () => Promise<Backend>,
): Promise<Interpolator | null> {
  if (!smooth) return null;
  const file = await finisher('interpolator');
  if (file) return openInterpolator(await openBackend(), file);
  throw new KinoraError('MODEL_NOT_INSTALLED', 'What makes videos smoother is not here yet.', {
    remedy: 'Download RIFE on the Models page, or with `npm run models -- download rife-4.26`.',
  });
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
  readonly signal: AbortSignal;
  /** Takes RGBA of the target size, in order; valid until it resolves. */
  readonly write: (pixels: Uint8ClampedArray<ArrayBuffer>) => Promise<void>;
}

/**
 * What lies between decoder and encoder: frames in between, then the size of the video in one resampling. Frames go
 * through one by one; at most three are kept.
 */
export class Finisher {
  readonly #scaler: FrameScaler;
  #first: Frame | null = null;
  #latest: Frame | null = null;
  /** Memory of the frame before the latest one. */
  #spare: Float32Array | undefined;
  #taken = 0;
  #written = 0;

  constructor(readonly options: FinisherOptions) {
    const { source, target, upscale } = options;
    this.#scaler = new FrameScaler(source, target, upscale ? lanczos3 : undefined);
  }

  /**
   * Takes the next frame, which is read before this resolves.
   *
   * @throws KinoraError `OUT_OF_MEMORY` where the network has no room; the signal's reason
   */
  async add(frame: Frame): Promise<void> {
    const { interpolator, loop } = this.options;
    this.#taken += 1;
    if (interpolator) {
      const copy = copyOf(frame, this.#spare);
      if (this.#latest) await this.#between(interpolator, this.#latest, copy);
      if (loop) this.#first ??= copyOf(frame);
      this.#spare = this.#latest?.data;
      this.#latest = copy;
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
      await this.#between(interpolator, latest, first);
    }
    return this.#written;
  }

  dispose(): void {
    this.options.interpolator?.dispose();
  }

  /** A device without room for the network is no reason to lose the video. */
  async #between(interpolator: Interpolator, a: Frame, b: Frame): Promise<void> {
    try {
      const middle = await interpolator.between(a, b, this.options.signal);
      // Where a scene ends nothing can be computed: its last frame stays.
      await this.#write(middle ?? a);
    } catch (cause) {
      if (toKinoraError(cause).code !== 'OUT_OF_MEMORY') throw cause;
      throw new KinoraError('OUT_OF_MEMORY', 'The device has no room to make the video smoother.', {
        remedy:
          'Make the video without that, then make the finished video smoother, on the CPU if need be.',
        cause,
      });
    }
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

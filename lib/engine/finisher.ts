import {
  type EnhanceRequest,
  type FinisherPart,
  type Finishing,
  finishedFormat,
  finisherOf,
  finishersOf,
  framesInFile,
  KinoraError,
  type PixelSize,
  type ProgressEvent,
  toKinoraError,
} from '../contract';
import { openUpscaler, type Upscaler } from '../finishing/realesr/upscaler';
import { type Interpolator, openInterpolator } from '../finishing/rife/interpolator';
import type { Backend } from '../gpu';
import type { Frame } from '../pipeline/latents';
import {
  coverCrop,
  createVideoWriter,
  FrameScaler,
  I420Scaler,
  inspectVideo,
  readFrames,
} from '../video';
import { catmullRom, lanczos3 } from '../video/resample';
import type { WeightFile } from '../weights';
import type { EngineTools } from './tools';

/** The networks that finish a video; null where it needs none. */
export interface FinishingNetworks {
  readonly interpolator: Interpolator | null;
  readonly upscaler: Upscaler | null;
}

/**
 * Opens the networks that a request needs to finish its video. Nothing is on the device before its first frame.
 *
 * @throws KinoraError `MODEL_NOT_INSTALLED` where one was not downloaded, and of its file
 */
export async function openFinishers(
  finishing: Finishing,
  { finisher }: Pick<EngineTools, 'finisher'>,
  openBackend: () => Promise<Backend>,
): Promise<FinishingNetworks> {
  async function open<Network>(
    part: FinisherPart,
    by: (backend: Backend, file: WeightFile) => Promise<Network>,
  ): Promise<Network> {
    const file = await finisher(part);
    if (file) return by(await openBackend(), file);
    const { id, name } = finisherOf[part];
    throw new KinoraError('MODEL_NOT_INSTALLED', `${name} is not in this browser yet.`, {
      remedy: `Download it on the Models page, or with \`npm run models -- download ${id}\`.`,
    });
  }
  const needed = finishersOf(finishing);
  return {
    interpolator: needed.includes('interpolator')
      ? await open('interpolator', openInterpolator)
      : null,
    upscaler: needed.includes('upscaler') ? await open('upscaler', openUpscaler) : null,
  };
}

/** What {@link Finisher} makes of which frames. */
export interface FinisherOptions extends FinishingNetworks {
  /** Size of the decoded frames. */
  readonly source: PixelSize;
  /** Size of the video. */
  readonly target: PixelSize;
  /** Whether it is enlarged: by the network, or with Lanczos-3 where there is none. */
  readonly finishing: Pick<Finishing, 'upscale'>;
  /** How many frames come, unless the run is finished early. */
  readonly frames: number;
  /** Whether the first frame follows the last one again. */
  readonly loop: boolean;
  readonly signal: AbortSignal;
  /**
   * Takes the frames of the video, in order.
   *
   * @param planes I420 of the target size, valid until it resolves
   * @param pixels makes RGBA of the frame
   */
  readonly write: (
    planes: Uint8Array,
    pixels: () => Uint8ClampedArray<ArrayBuffer>,
  ) => Promise<void>;
}

/**
 * The steps between decoder and encoder: frames in between, then the size of the video in one resampling. Frames go
 * through one by one; at most three are kept.
 */
export class Finisher {
  readonly #scaler: I420Scaler;
  readonly #pixels: (frame: Float32Array) => Uint8ClampedArray<ArrayBuffer>;
  #first: Frame | null = null;
  #latest: Frame | null = null;
  /** Memory of the frame before the latest one. */
  #spare: Float32Array | undefined;
  #taken = 0;
  #written = 0;

  constructor(readonly options: FinisherOptions) {
    const { target, finishing, upscaler } = options;
    const factor = upscaler ? 2 : 1;
    const source = {
      width: factor * options.source.width,
      height: factor * options.source.height,
    };
    const kernel = finishing.upscale === 2 && !upscaler ? lanczos3 : catmullRom;
    this.#scaler = new I420Scaler(source, target, kernel);
    this.#pixels = (frame) => new FrameScaler(source, target, kernel).scale(frame);
  }

  /**
   * Takes the next frame, which is read before this resolves.
   *
   * @throws KinoraError `OUT_OF_MEMORY` where a network has no room; the signal's reason
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
    this.options.upscaler?.dispose();
  }

  async #between(interpolator: Interpolator, a: Frame, b: Frame): Promise<void> {
    const { signal } = this.options;
    const middle = await withRemedy('smoother', interpolator.between(a, b, signal));
    // No frame can be computed at the end of a scene: its last frame stays.
    await this.#write(middle ?? a);
  }

  async #write(frame: Frame): Promise<void> {
    const { upscaler, signal, write } = this.options;
    const { data } = upscaler
      ? await withRemedy('larger', upscaler.enlarge(frame, 2, signal))
      : frame;
    await write(this.#scaler.scale(data), () => this.#pixels(data));
    this.#written += 1;
  }
}

/** A device without room for a network is no reason to lose the video. */
async function withRemedy<Result>(change: string, work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (cause) {
    if (toKinoraError(cause).code !== 'OUT_OF_MEMORY') throw cause;
    throw new KinoraError('OUT_OF_MEMORY', `The device has no room to make the video ${change}.`, {
      remedy: `Make the video without that, then make the finished video ${change}, on the CPU if need be.`,
      cause,
    });
  }
}

/** @param into takes the values; a new array when absent */
function copyOf(frame: Frame, into: Float32Array = new Float32Array(frame.data.length)): Frame {
  into.set(frame.data);
  return { ...frame, data: into };
}

/**
 * Decodes a finished video, frame by frame, and encodes it enlarged or with frames in between.
 *
 * @throws KinoraError `VIDEO_UNREADABLE`, `OUT_OF_MEMORY`, `ENCODER_FAILED`; the signal's reason
 */
export async function enhanceVideo(
  request: EnhanceRequest,
  networks: FinishingNetworks,
  signal: AbortSignal,
  report: (event: ProgressEvent) => void,
): Promise<Blob> {
  const { file, finishing, loop } = request;
  const { width, height, frames, frameRate } = await inspectVideo(file);
  await networks.upscaler?.requireRoom({ width, height }, 2);
  // The last frame of a loop is left out already.
  const inFile = framesInFile(loop ? frames + 1 : frames, { ...finishing, loop });
  const format = finishedFormat({ width, height, frameRate }, finishing);
  const output = await createVideoWriter({ ...format, frames: inFile });
  const finisher = new Finisher({
    source: { width, height },
    target: format,
    finishing,
    frames,
    loop,
    ...networks,
    signal,
    write: (planes) => output.add(planes),
  });
  try {
    const indices = Array.from({ length: frames }, (_, index) => index);
    for await (const { index, pixels } of readFrames(file, indices, frameRate)) {
      signal.throwIfAborted();
      await finisher.add({ data: coverCrop(pixels, width, height), width, height });
      report({ type: 'frame', frame: index + 1, frames });
    }
    return await output.finish(await finisher.end());
  } finally {
    finisher.dispose();
    await output.cancel();
  }
}

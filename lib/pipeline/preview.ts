import { KinoraError, type PreviewStrip } from '../contract';
import type { Backend } from '../gpu';
import type { LatentSize, LatentToRgb } from './latents';
import type { VideoModel } from './model';

/** Frames of the strip of colours, at most. */
const stripFrames = 16;

/** In less time than this the decoder would hardly open its sessions, without a picture. */
const leastSeconds = 0.5;

/** Makes the previews of a run: true pictures where it can, else strips of colours. */
export class Previews {
  /** Whether the device has room for the tiny decoder beside the denoiser, by the memory plan. */
  decodes = false;
  readonly #begin = performance.now();
  /** What decoded previews took so far. */
  #seconds = 0;

  /** @param share of the run's time that decoded previews may take */
  constructor(
    readonly backend: Backend,
    readonly model: VideoModel,
    readonly share = 0.1,
  ) {}

  /** @returns null where the model has no map from latents to colours either */
  async make(
    latents: Float32Array,
    size: LatentSize,
    signal: AbortSignal,
  ): Promise<PreviewStrip | null> {
    const decoded = this.decodes ? await this.#decode(latents, size, signal) : null;
    const { preview } = this.model.latents;
    return decoded ?? (preview && previewStrip(latents, size, preview, stripFrames));
  }

  /** Null where the time or, after all, the memory does not suffice. */
  async #decode(
    latents: Float32Array,
    size: LatentSize,
    signal: AbortSignal,
  ): Promise<PreviewStrip | null> {
    const begin = performance.now();
    const seconds = (this.share * (begin - this.#begin)) / 1000 - this.#seconds;
    if (seconds < leastSeconds) return null;
    try {
      return await decodedPreview(this.backend, this.model, { size, latents, signal }, seconds);
    } catch (error) {
      if (!(error instanceof KinoraError) || error.code !== 'OUT_OF_MEMORY') throw error;
      await this.backend.recover();
      this.decodes = false;
      return null;
    } finally {
      this.#seconds += (performance.now() - begin) / 1000;
    }
  }
}

/**
 * A small moving picture of latents, at practically no cost: a linear map per latent pixel.
 *
 * @param values model-space latents [C, F, h, w]; best is the prediction of the clean latents
 * @param toRgb the model's map, with one row per channel
 * @param maxFrames most frames of the strip; they are spread evenly, first and last included
 * @throws TypeError for another number of values, RangeError for no frame
 */
export function previewStrip(
  values: Float32Array,
  { frames, height, width }: LatentSize,
  { matrix, bias }: LatentToRgb,
  maxFrames: number,
): PreviewStrip {
  const plane = height * width;
  if (values.length !== matrix.length * frames * plane) {
    throw new TypeError(
      `Latents [${matrix.length},${frames},${height},${width}] do not have ${values.length} values.`,
    );
  }
  if (!Number.isInteger(maxFrames) || maxFrames < 1) {
    throw new RangeError('maxFrames must be 1 or more.');
  }

  const count = Math.min(frames, maxFrames);
  const pixels = new Uint8ClampedArray(count * plane * 4);
  const rgb = new Float32Array(plane * 3);
  for (let i = 0; i < count; i++) {
    const frame = count === 1 ? 0 : Math.round((i * (frames - 1)) / (count - 1));
    for (let p = 0; p < plane; p++) rgb.set(bias, p * 3);
    for (const [channel, [red, green, blue]] of matrix.entries()) {
      const start = (channel * frames + frame) * plane;
      for (let p = 0; p < plane; p++) {
        const value = values[start + p] as number;
        rgb[p * 3] = (rgb[p * 3] as number) + value * red;
        rgb[p * 3 + 1] = (rgb[p * 3 + 1] as number) + value * green;
        rgb[p * 3 + 2] = (rgb[p * 3 + 2] as number) + value * blue;
      }
    }
    for (let p = 0; p < plane; p++) {
      const out = (i * plane + p) * 4;
      for (let c = 0; c < 3; c++) pixels[out + c] = ((rgb[p * 3 + c] as number) + 1) * 127.5;
      pixels[out + 3] = 255;
    }
  }
  return { pixels, width, height, count };
}

/** Longer side of a decoded preview in pixels, at most. */
const mostPixels = 320;

/**
 * A true picture of latents, by the model's tiny decoder: the last frame of each latent frame, from the
 * first one on until the time is used up.
 *
 * @param clip model-space latents [C, F, h, w]; best is the prediction of the clean latents
 * @param seconds about the most that it may take
 * @returns null where the time is too short for a picture that moves
 * @throws KinoraError `OUT_OF_MEMORY`, and what decoding throws; then nothing of it stays on the device
 */
export async function decodedPreview(
  backend: Backend,
  model: Pick<VideoModel, 'latents' | 'decode'>,
  clip: {
    readonly size: LatentSize;
    readonly latents: Float32Array;
    readonly signal: AbortSignal;
  },
  seconds: number,
): Promise<PreviewStrip | null> {
  const { space, time } = model.latents.strides;
  const [width, height] = [clip.size.width * space, clip.size.height * space];
  const step = Math.ceil(Math.max(width, height) / mostPixels);
  const small = { width: Math.floor(width / step), height: Math.floor(height / step) };
  const deadline = performance.now() + 1000 * seconds;
  const frames: Uint8ClampedArray[] = [];
  let index = 0;
  const options = { decoder: 'tiny', tiles: 'full', onTile: () => undefined } as const;
  for await (const frame of model.decode(backend, { ...clip, ...options })) {
    // Frame 0 is the first latent frame; each further one makes `time` frames.
    if (index++ % time === 0) frames.push(shrink(frame, width, height, step));
    if (performance.now() > deadline) break;
  }
  if (frames.length < Math.min(2, clip.size.frames)) return null;
  const pixels = new Uint8ClampedArray(frames.length * small.width * small.height * 4);
  for (const [i, frame] of frames.entries()) pixels.set(frame, i * frame.length);
  return { pixels, ...small, count: frames.length };
}

/** Every `step`-th pixel of a planar frame in −1…1, as RGBA. */
function shrink(
  frame: Float32Array,
  width: number,
  height: number,
  step: number,
): Uint8ClampedArray {
  const [columns, rows] = [Math.floor(width / step), Math.floor(height / step)];
  const out = new Uint8ClampedArray(columns * rows * 4);
  for (let y = 0; y < rows; y++) {
    for (let x = 0; x < columns; x++) {
      const from = y * step * width + x * step;
      const to = (y * columns + x) * 4;
      for (let c = 0; c < 3; c++) {
        out[to + c] = ((frame[c * width * height + from] as number) + 1) * 127.5;
      }
      out[to + 3] = 255;
    }
  }
  return out;
}

import { KinoraError } from '../contract';

/** An image or a frame: planar RGB [3, height, width] in −1…1. */
export interface Frame {
  readonly data: Float32Array;
  readonly width: number;
  readonly height: number;
}

/** Size of a clip in pixels. */
export interface ClipSize {
  readonly width: number;
  readonly height: number;
  readonly frames: number;
}

/** Size of a clip in latent space. */
export interface LatentSize {
  readonly frames: number;
  readonly height: number;
  readonly width: number;
}

/** A linear map from latents to RGB in −1…1, for a preview at practically no cost. */
export interface LatentToRgb {
  /** One row per channel. */
  readonly matrix: readonly (readonly [red: number, green: number, blue: number])[];
  readonly bias: readonly [red: number, green: number, blue: number];
}

/** The latent space of a model. Latents are channel first: [channels, frames, height, width]. */
export interface LatentSpace {
  readonly channels: number;
  /** Pixels per latent on each side, and frames per latent frame after the first. */
  readonly strides: { readonly space: number; readonly time: number };
  /** Null where none is known for these channels. */
  readonly preview: LatentToRgb | null;
}

/**
 * The latent size of a clip.
 *
 * @throws RangeError when the frames are not one more than a multiple of the stride
 */
export function latentSizeOf(
  { strides }: Pick<LatentSpace, 'strides'>,
  clip: ClipSize,
): LatentSize {
  return {
    frames: latentFrames(clip.frames, strides.time),
    height: clip.height / strides.space,
    width: clip.width / strides.space,
  };
}

/**
 * Latent frames of a clip: one for its first frame, one for each further `stride` frames.
 *
 * @throws RangeError when the frames do not fit the stride
 */
export function latentFrames(frames: number, stride: number): number {
  if (!Number.isInteger(frames) || frames < 1 || (frames - 1) % stride !== 0) {
    throw new RangeError(`${frames} frames are not a multiple of ${stride} plus 1.`);
  }
  return (frames - 1) / stride + 1;
}

/** Frame `f` of latents [C, F, h, w] as [C, h, w]. */
export function latentFrame(values: Float32Array, size: LatentSize, f: number): Float32Array {
  const plane = size.height * size.width;
  const channels = values.length / size.frames / plane;
  const frame = new Float32Array(channels * plane);
  for (let c = 0; c < channels; c++) {
    const start = (c * size.frames + f) * plane;
    frame.set(values.subarray(start, start + plane), c * plane);
  }
  return frame;
}

/** All frames of latents [C, F, h, w], each [C, h, w]. */
export function splitLatents(values: Float32Array, size: LatentSize): Float32Array[] {
  return Array.from({ length: size.frames }, (_, f) => latentFrame(values, size, f));
}

/** Latents [C, F, h, w] of their frames, each [C, h, w]. */
export function joinLatents(
  frames: readonly Float32Array[],
  { height, width }: Omit<LatentSize, 'frames'>,
): Float32Array {
  const plane = height * width;
  const latents = new Float32Array(frames.reduce((sum, { length }) => sum + length, 0));
  for (const [f, frame] of frames.entries()) {
    for (let c = 0; c * plane < frame.length; c++) {
      latents.set(frame.subarray(c * plane, (c + 1) * plane), (c * frames.length + f) * plane);
    }
  }
  return latents;
}

/**
 * Refuses numbers that cannot be shown.
 *
 * @param what the subject of the sentence, such as `Frame 3 of the decoded clip`
 * @throws KinoraError `LATENTS_NOT_FINITE`
 */
export function requireFinite(values: Float32Array, what: string): void {
  if (values.every(Number.isFinite)) return;
  throw new KinoraError('LATENTS_NOT_FINITE', `${what} has invalid numbers (NaN or infinity).`);
}

import type { LatentSize, LatentToRgb } from './latents';

/** RGBA frames, one after another. */
export interface PreviewStrip {
  readonly pixels: Uint8ClampedArray<ArrayBuffer>;
  readonly width: number;
  readonly height: number;
  readonly count: number;
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

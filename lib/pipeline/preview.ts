/** Latents of one clip in model space, channel first. */
export interface LatentVideo {
  /** [channels, frames, height, width]. */
  readonly values: Float32Array;
  readonly channels: number;
  readonly frames: number;
  readonly height: number;
  readonly width: number;
}

/** RGBA frames, one after another. */
export interface PreviewStrip {
  readonly pixels: Uint8ClampedArray<ArrayBuffer>;
  readonly width: number;
  readonly height: number;
  readonly count: number;
}

/** Latent → RGB in −1…1, for the 48 channels of Wan2.2's VAE. Fitted by ComfyUI (`latent_formats.Wan22`). */
const rgbOfChannel: readonly (readonly [number, number, number])[] = [
  [0.0119, 0.0103, 0.0046],
  [-0.1062, -0.0504, 0.0165],
  [0.014, 0.0409, 0.0491],
  [-0.0813, -0.0677, 0.0607],
  [0.0656, 0.0851, 0.0808],
  [0.0264, 0.0463, 0.0912],
  [0.0295, 0.0326, 0.059],
  [-0.0244, -0.027, 0.0025],
  [0.0443, -0.0102, 0.0288],
  [-0.0465, -0.009, -0.0205],
  [0.0359, 0.0236, 0.0082],
  [-0.0776, 0.0854, 0.1048],
  [0.0564, 0.0264, 0.0561],
  [0.0006, 0.0594, 0.0418],
  [-0.0319, -0.0542, -0.0637],
  [-0.0268, 0.0024, 0.026],
  [0.0539, 0.0265, 0.0358],
  [-0.0359, -0.0312, -0.0287],
  [-0.0285, -0.1032, -0.1237],
  [0.1041, 0.0537, 0.0622],
  [-0.0086, -0.0374, -0.0051],
  [0.039, 0.067, 0.2863],
  [0.0069, 0.0144, 0.0082],
  [0.0006, -0.0167, 0.0079],
  [0.0313, -0.0574, -0.0232],
  [-0.1454, -0.0902, -0.0481],
  [0.0714, 0.0827, 0.0447],
  [-0.0304, -0.0574, -0.0196],
  [0.0401, 0.0384, 0.0204],
  [-0.0758, -0.0297, -0.0014],
  [0.0568, 0.1307, 0.1372],
  [-0.0055, -0.031, -0.038],
  [0.0239, -0.0305, 0.0325],
  [-0.0663, -0.0673, -0.014],
  [-0.0416, -0.0047, -0.0023],
  [0.0166, 0.0112, -0.0093],
  [-0.0211, 0.0011, 0.0331],
  [0.1833, 0.1466, 0.225],
  [-0.0368, 0.037, 0.0295],
  [-0.3441, -0.3543, -0.2008],
  [-0.0479, -0.0489, -0.042],
  [-0.066, -0.0153, 0.08],
  [-0.0101, 0.0068, 0.0156],
  [-0.069, -0.0452, -0.0927],
  [-0.0145, 0.0041, 0.0015],
  [0.0421, 0.0451, 0.0373],
  [0.0504, -0.0483, -0.0356],
  [-0.0837, 0.0168, 0.0055],
];
const rgbBias = [0.0317, -0.0878, -0.1388] as const;

/**
 * A small moving picture of latents, at practically no cost: a linear map per latent pixel.
 *
 * @param latents model-space latents of a 48-channel model; best is the prediction of the clean latent
 * @param maxFrames most frames of the strip; they are spread evenly, first and last included
 * @throws TypeError for another number of channels or values, RangeError for no frame
 */
export function previewStrip(latents: LatentVideo, maxFrames: number): PreviewStrip {
  const { values, channels, frames, height, width } = latents;
  if (channels !== rgbOfChannel.length) {
    throw new TypeError(
      `The preview knows latents of ${rgbOfChannel.length} channels, not of ${channels}.`,
    );
  }
  const plane = height * width;
  if (values.length !== channels * frames * plane) {
    throw new TypeError(
      `Latents [${channels},${frames},${height},${width}] do not have ${values.length} values.`,
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
    for (let p = 0; p < plane; p++) rgb.set(rgbBias, p * 3);
    for (const [channel, [red, green, blue]] of rgbOfChannel.entries()) {
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

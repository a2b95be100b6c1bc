/** Size in pixels and frames per second. */
export interface Format {
  readonly width: number;
  readonly height: number;
  readonly frameRate: number;
}

/** Pixels per second up to which each pixel gets its full share: 720p at 24 frames per second. */
const fullShare = 1280 * 720 * 24;

/**
 * Bits per second: 0.45 bit per pixel, 10 Mbit/s at 720p and 24 fps. No visible blocks even in noisy motion. Beyond
 * that the rate grows with the power 0.75 of the pixels: what is enlarged or lies between frames holds less that is new.
 */
export function bitRateOf({ width, height, frameRate }: Format): number {
  const pixels = width * height * frameRate;
  const share = Math.min(1, (fullShare / pixels) ** 0.25);
  return Math.max(200_000, Math.round(pixels * share * 0.45));
}

/**
 * Levels of H.264 (ITU-T H.264, table A-1): macroblocks of a frame and per second, and bits per second in High profile.
 * Lower ones save nothing.
 */
const levels = [
  { code: 0x1f, frame: 3600, second: 108_000, bits: 17.5e6 },
  { code: 0x20, frame: 5120, second: 216_000, bits: 25e6 },
  { code: 0x2a, frame: 8704, second: 522_240, bits: 62.5e6 },
  { code: 0x32, frame: 22_080, second: 589_824, bits: 168.75e6 },
  { code: 0x33, frame: 36_864, second: 983_040, bits: 300e6 },
  { code: 0x34, frame: 36_864, second: 2_073_600, bits: 300e6 },
] as const;

/** The codec string of a video in High profile, at the lowest level that decodes it; undefined beyond level 5.2. */
export function avcCodec(format: Format): string | undefined {
  const { width, height, frameRate } = format;
  const blocks = Math.ceil(width / 16) * Math.ceil(height / 16);
  const level = levels.find(
    ({ frame, second, bits }) =>
      blocks <= frame && blocks * frameRate <= second && bitRateOf(format) <= bits,
  );
  return level && `avc1.6400${level.code.toString(16)}`;
}

/** Size in pixels and frames per second. */
export interface Format {
  readonly width: number;
  readonly height: number;
  readonly frameRate: number;
}

/** Bits per second: 0.45 bit per pixel, 10 Mbit/s at 720p and 24 fps. No visible blocks even in noisy motion. */
export function bitRateOf({ width, height, frameRate }: Format): number {
  return Math.max(200_000, Math.round(width * height * frameRate * 0.45));
}

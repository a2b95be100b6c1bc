/** Bytes of one 4:2:0 frame: a full plane of luma and two quarter planes of chroma. */
export function i420Bytes(width: number, height: number): number {
  return (width * height * 3) / 2;
}

/** The colours of every video: BT.709 in limited range, as HD video has them. */
export const bt709: VideoColorSpaceInit = {
  primaries: 'bt709',
  transfer: 'bt709',
  matrix: 'bt709',
  fullRange: false,
};

// ITU-R BT.709-6, items 3.2–3.4 with the 8-bit quantisation of 3.5 (Y 16…235, C 16…240), times 2¹⁶.
const one = 65_536;
const kr = 0.2126;
const kb = 0.0722;
const yScale = (219 / 255) * one;
const yR = Math.round(kr * yScale);
const yB = Math.round(kb * yScale);
const yG = Math.round(yScale) - yR - yB; // so that white is 235 exactly
const cScale = (224 / 255) * one;
const uR = Math.round((-0.5 * kr * cScale) / (1 - kb));
const uB = Math.round(0.5 * cScale);
const uG = -uR - uB; // so that grey has no colour
const vR = Math.round(0.5 * cScale);
const vB = Math.round((-0.5 * kb * cScale) / (1 - kr));
const vG = -vR - vB;
/** RGB → Y, U, V times 2¹⁶, and what is added: U and V are those of the sum of 2×2 pixels. */
export const matrix = {
  y: [yR, yG, yB],
  u: [uR, uG, uB],
  v: [vR, vG, vB],
  yBias: 16 * one + one / 2,
  cBias: 4 * (128 * one + one / 2),
} as const;

// The inverse, also times 2¹⁶.
const lumaScale = Math.round((255 / 219) * one);
const redV = Math.round(((2 * (1 - kr) * 255) / 224) * one);
const blueU = Math.round(((2 * (1 - kb) * 255) / 224) * one);
const greenU = Math.round((-kb / (1 - kr - kb)) * blueU);
const greenV = Math.round((-kr / (1 - kr - kb)) * redV);

/** Where the planes of a decoded frame lie in its bytes; `step` is 2 where U and V alternate (NV12). */
export interface YuvLayout {
  readonly y: { readonly offset: number; readonly stride: number };
  readonly u: { readonly offset: number; readonly stride: number };
  readonly v: { readonly offset: number; readonly stride: number };
  readonly step: 1 | 2;
}

/**
 * 4:2:0 in BT.709, limited range → RGBA, as the inverse of {@link matrix}; 2×2 pixels share their colour.
 * A canvas does not: Chromium's own conversion limits a factor, so that blue is off by up to 9.
 *
 * @returns `width`·`height`·4 bytes
 */
export function yuvToRgba(
  bytes: Uint8Array,
  { y, u, v, step }: YuvLayout,
  width: number,
  height: number,
): Uint8ClampedArray<ArrayBuffer> {
  const rgba = new Uint8ClampedArray(width * height * 4);
  let p = 0;
  for (let row = 0; row < height; row++) {
    const luma = y.offset + row * y.stride;
    const first = u.offset + (row >> 1) * u.stride;
    const second = v.offset + (row >> 1) * v.stride;
    for (let column = 0; column < width; column++, p += 4) {
      const at = (column >> 1) * step;
      const light = ((bytes[luma + column] as number) - 16) * lumaScale + one / 2;
      const cb = (bytes[first + at] as number) - 128;
      const cr = (bytes[second + at] as number) - 128;
      rgba[p] = (light + redV * cr) >> 16;
      rgba[p + 1] = (light + greenU * cb + greenV * cr) >> 16;
      rgba[p + 2] = (light + blueU * cb) >> 16;
      rgba[p + 3] = 255;
    }
  }
  return rgba;
}

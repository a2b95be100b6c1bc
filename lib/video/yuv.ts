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
const yBias = 16 * one + one / 2;
// The sum of 2×2 pixels is four times the value, hence two more bits are shifted out.
const cBias = 4 * (128 * one + one / 2);

/**
 * RGBA → I420 in BT.709, limited range; A is ignored. Colour is the mean of each 2×2 pixels.
 * The encoders do not convert, since browsers differ in matrix and range (README, "Colours").
 *
 * @param rgba `width`·`height`·4 bytes
 * @param target at least {@link i420Bytes} bytes
 * @param width even
 * @param height even
 */
export function rgbaToI420(
  rgba: Uint8ClampedArray,
  target: Uint8Array,
  width: number,
  height: number,
): void {
  const luma = width * height;
  let u = luma;
  let v = luma + luma / 4;
  for (let row = 0; row < height; row += 2) {
    let top = row * width;
    let bottom = top + width;
    for (let column = 0; column < width; column += 2) {
      let p = top * 4;
      const r0 = rgba[p] as number;
      const g0 = rgba[p + 1] as number;
      const b0 = rgba[p + 2] as number;
      const r1 = rgba[p + 4] as number;
      const g1 = rgba[p + 5] as number;
      const b1 = rgba[p + 6] as number;
      p = bottom * 4;
      const r2 = rgba[p] as number;
      const g2 = rgba[p + 1] as number;
      const b2 = rgba[p + 2] as number;
      const r3 = rgba[p + 4] as number;
      const g3 = rgba[p + 5] as number;
      const b3 = rgba[p + 6] as number;
      target[top] = (yR * r0 + yG * g0 + yB * b0 + yBias) >> 16;
      target[top + 1] = (yR * r1 + yG * g1 + yB * b1 + yBias) >> 16;
      target[bottom] = (yR * r2 + yG * g2 + yB * b2 + yBias) >> 16;
      target[bottom + 1] = (yR * r3 + yG * g3 + yB * b3 + yBias) >> 16;
      const r = r0 + r1 + r2 + r3;
      const g = g0 + g1 + g2 + g3;
      const b = b0 + b1 + b2 + b3;
      target[u++] = (uR * r + uG * g + uB * b + cBias) >> 18;
      target[v++] = (vR * r + vG * g + vB * b + cBias) >> 18;
      top += 2;
      bottom += 2;
    }
  }
}

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
 * 4:2:0 in BT.709, limited range → RGBA, as the inverse of {@link rgbaToI420}; 2×2 pixels share their colour.
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

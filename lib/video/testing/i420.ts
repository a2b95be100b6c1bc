import { createVideoWriter, type VideoWriter, type VideoWriterOptions } from '../encoder';
import { i420Bytes, matrix } from '../yuv';

const [yR, yG, yB] = matrix.y;
const [uR, uG, uB] = matrix.u;
const [vR, vG, vB] = matrix.v;

/** What an encoder takes, of RGBA pixels; see {@link rgbaToI420}. */
export function i420Of(rgba: Uint8ClampedArray, width: number, height: number): Uint8Array {
  const planes = new Uint8Array(i420Bytes(width, height));
  rgbaToI420(rgba, planes, width, height);
  return planes;
}

/** A writer that takes frames as RGBA. */
export async function createRgbaWriter(options: VideoWriterOptions) {
  const { width, height } = options;
  const writer: VideoWriter = await createVideoWriter(options);
  return {
    encoder: writer.encoder,
    // What is no frame is refused by the writer itself.
    add: (rgba: Uint8ClampedArray) =>
      writer.add(
        rgba.length === 4 * width * height ? i420Of(rgba, width, height) : Uint8Array.from(rgba),
      ),
    finish: writer.finish.bind(writer),
    cancel: writer.cancel.bind(writer),
  };
}

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
      target[top] = (yR * r0 + yG * g0 + yB * b0 + matrix.yBias) >> 16;
      target[top + 1] = (yR * r1 + yG * g1 + yB * b1 + matrix.yBias) >> 16;
      target[bottom] = (yR * r2 + yG * g2 + yB * b2 + matrix.yBias) >> 16;
      target[bottom + 1] = (yR * r3 + yG * g3 + yB * b3 + matrix.yBias) >> 16;
      const r = r0 + r1 + r2 + r3;
      const g = g0 + g1 + g2 + g3;
      const b = b0 + b1 + b2 + b3;
      target[u++] = (uR * r + uG * g + uB * b + matrix.cBias) >> 18;
      target[v++] = (vR * r + vG * g + vB * b + matrix.cBias) >> 18;
      top += 2;
      bottom += 2;
    }
  }
}

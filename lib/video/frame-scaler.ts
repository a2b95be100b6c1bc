import { centred, placeImage } from '../contract';
import { type Axis, axisSpan, catmullRom, type Kernel, makeAxis } from './resample';

/**
 * Converts the model's frames to pixels of the video: planar RGB [3, height, width] in [−1, 1]
 * → RGBA of exactly the target size, scaled to cover and centre-cropped. A value v
 * becomes the whole number nearest to (v + 1)·127.5, ties to even, cut to 0…255; NaN becomes 0.
 *
 * Weights are computed once and buffers are reused: the pixels that {@link scale} returns are
 * overwritten by its next call.
 */
export class FrameScaler {
  readonly #sourceWidth: number;
  readonly #sourcePlane: number;
  readonly #width: number;
  readonly #columns: Axis;
  readonly #rows: Axis;
  readonly #from: number;
  readonly #span: number;
  /** One row blended vertically, [3, span]. */
  readonly #blended: Float32Array;
  readonly #pixels: Uint8ClampedArray<ArrayBuffer>;

  /**
   * @param kernel Catmull-Rom for nearly the same size, Lanczos-3 to enlarge
   * @throws TypeError for sizes that are not positive whole numbers
   */
  constructor(
    source: { readonly width: number; readonly height: number },
    target: { readonly width: number; readonly height: number },
    kernel: Kernel = catmullRom,
  ) {
    const { x, y } = placeImage(source, centred, target);
    this.#columns = makeAxis(x, kernel);
    this.#rows = makeAxis(y, kernel);
    const { from, to } = axisSpan(this.#columns);
    this.#from = from;
    this.#span = to - from;
    this.#sourceWidth = source.width;
    this.#sourcePlane = source.width * source.height;
    this.#width = target.width;
    this.#blended = new Float32Array(3 * this.#span);
    this.#pixels = new Uint8ClampedArray(target.width * target.height * 4).fill(255);
  }

  /**
   * @param frame planar RGB [3, height, width] in [−1, 1]
   * @returns RGBA pixels of the target size, valid until the next call
   * @throws TypeError for a frame of another length
   */
  scale(frame: Float32Array): Uint8ClampedArray<ArrayBuffer> {
    if (frame.length !== 3 * this.#sourcePlane) {
      throw new TypeError(`The frame has ${frame.length} values, not ${3 * this.#sourcePlane}.`);
    }
    const height = this.#rows.starts.length;
    for (let i = 0; i < height; i++) {
      for (let c = 0; c < 3; c++) this.#blendRows(frame, i, c);
      this.#writeRow(i);
    }
    return this.#pixels;
  }

  /** Blends the source rows of output row `i` in channel `c`. */
  #blendRows(frame: Float32Array, i: number, c: number): void {
    const { taps, starts, weights } = this.#rows;
    const stride = this.#sourceWidth;
    const span = this.#span;
    const first = c * this.#sourcePlane + (starts[i] as number) * stride + this.#from;
    const row = this.#blended.subarray(c * span, (c + 1) * span);
    if (taps === 4) {
      // The usual case, enlarging: four rows at once, without intermediate results in memory.
      const w0 = weights[4 * i] as number;
      const w1 = weights[4 * i + 1] as number;
      const w2 = weights[4 * i + 2] as number;
      const w3 = weights[4 * i + 3] as number;
      const row0 = frame.subarray(first, first + span);
      const row1 = frame.subarray(first + stride, first + stride + span);
      const row2 = frame.subarray(first + 2 * stride, first + 2 * stride + span);
      const row3 = frame.subarray(first + 3 * stride, first + 3 * stride + span);
      for (let j = 0; j < span; j++) {
        row[j] =
          w0 * (row0[j] as number) +
          w1 * (row1[j] as number) +
          w2 * (row2[j] as number) +
          w3 * (row3[j] as number);
      }
      return;
    }
    row.fill(0);
    for (let t = 0; t < taps; t++) {
      const weight = weights[i * taps + t] as number;
      const at = first + t * stride;
      for (let j = 0; j < span; j++) {
        row[j] = (row[j] as number) + weight * (frame[at + j] as number);
      }
    }
  }

  /** Blends the columns of the current row and writes output row `i`. */
  #writeRow(i: number): void {
    const { taps, starts, weights } = this.#columns;
    const pixels = this.#pixels;
    const span = this.#span;
    const from = this.#from;
    const width = this.#width;
    const red = this.#blended.subarray(0, span);
    const green = this.#blended.subarray(span, 2 * span);
    const blue = this.#blended.subarray(2 * span, 3 * span);
    let at = i * width * 4;
    if (taps === 4) {
      for (let j = 0; j < width; j++, at += 4) {
        const s = (starts[j] as number) - from;
        const w0 = weights[4 * j] as number;
        const w1 = weights[4 * j + 1] as number;
        const w2 = weights[4 * j + 2] as number;
        const w3 = weights[4 * j + 3] as number;
        pixels[at] = toByte(four(red, s, w0, w1, w2, w3));
        pixels[at + 1] = toByte(four(green, s, w0, w1, w2, w3));
        pixels[at + 2] = toByte(four(blue, s, w0, w1, w2, w3));
      }
      return;
    }
    for (let j = 0; j < width; j++, at += 4) {
      const s = (starts[j] as number) - from;
      let r = 0;
      let g = 0;
      let b = 0;
      for (let t = 0; t < taps; t++) {
        const weight = weights[j * taps + t] as number;
        r += weight * (red[s + t] as number);
        g += weight * (green[s + t] as number);
        b += weight * (blue[s + t] as number);
      }
      pixels[at] = toByte(r);
      pixels[at + 1] = toByte(g);
      pixels[at + 2] = toByte(b);
    }
  }
}

function four(row: Float32Array, s: number, w0: number, w1: number, w2: number, w3: number) {
  return (
    w0 * (row[s] as number) +
    w1 * (row[s + 1] as number) +
    w2 * (row[s + 2] as number) +
    w3 * (row[s + 3] as number)
  );
}

/** To the scale of bytes; the clamped array itself cuts and rounds, ties to even. */
function toByte(value: number): number {
  return value * 127.5 + 127.5;
}

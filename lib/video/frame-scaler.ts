import { centred, placeImage } from '../contract';
import { type Axis, axisSpan, catmullRom, type Kernel, makeAxis } from './resample';

/**
 * Converts the model's frames to pixels that something looks at: planar RGB [3, height, width] in [−1, 1]
 * → RGBA of exactly the target size, scaled to cover and centre-cropped. The frames of a video are made
 * by {@link I420Scaler}, which is ten times as fast. A value v becomes the whole number nearest to (v + 1)·127.5, ties to even, cut to 0…255; NaN becomes 0.
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

/** To the scale of bytes; the clamped array itself cuts and rounds, ties to even. */
function toByte(value: number): number {
  return value * 127.5 + 127.5;
}

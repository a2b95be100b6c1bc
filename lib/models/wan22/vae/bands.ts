import { at } from '../../../contract';
import type { Backend, ReadableTensor, TensorPool } from '../../../gpu';

/** [1, H, W, C], or with other leading dimensions where a function says so. */
export type Image = ReadableTensor;

/** Sizes of an image [1, H, W, C]. */
export function extentOf({ dims }: Image) {
  return { height: at(dims, 1), width: at(dims, 2), channels: at(dims, 3) };
}

/** Rows [start, start + rows) of an image. */
export interface Band {
  readonly start: number;
  readonly rows: number;
}

/**
 * Default size of an image inside one run, in bytes. At 1280×704 the decoder then takes 10 GiB;
 * twice as much makes half as many runs and takes 0.5 GiB more (`measureDecoder`).
 */
export const defaultBandBytes = 16 * 2 ** 20;

/**
 * Cuts an image into bands of rows so that an image inside a run takes at most `bandBytes`. The
 * runtime's intermediates, the spare partial sums and the length of one dispatch are then bounded,
 * whatever the resolution. The number of bands is a power of two: images of neighbouring levels then
 * have bands of equal size, and the runtime's exact-size buffer pool serves them with the same
 * buffers.
 *
 * @param rowBytes bytes of a row of the widest image in the run
 */
export function bandsOf(height: number, rowBytes: number, bandBytes: number): Band[] {
  let count = 1;
  while (count < height && Math.ceil(height / count) * rowBytes > bandBytes) count *= 2;
  const rows = Math.ceil(height / count);
  return Array.from({ length: Math.ceil(height / rows) }, (_, i) => ({
    start: i * rows,
    rows: Math.min(rows, height - i * rows),
  }));
}

/** Copies rows between images [1, H, W, C] of one width and depth; rows outside are zero. */
export class RowCopier {
  #zeros: Image | undefined;

  constructor(
    readonly backend: Backend,
    readonly scratch: TensorPool,
  ) {}

  /**
   * Rows [first, first + rows) of `image` in a tensor of the scratch pool. Rows above and below the
   * image are zero.
   */
  cut(image: Image, first: number, rows: number): Image {
    const { height, width, channels } = extentOf(image);
    const row = width * channels;
    const band = this.scratch.take([1, rows, width, channels]);
    const top = Math.max(first, 0);
    const bottom = Math.min(first + rows, height);
    this.backend.copy(image, top * row, band, (top - first) * row, (bottom - top) * row);
    for (let y = first; y < first + rows; y++) {
      if (y >= 0 && y < height) continue;
      this.backend.copy(this.#zeroRow(row), 0, band, (y - first) * row, row);
    }
    return band;
  }

  /** Puts all rows of `band` at row `start` of `image` and returns the band to the pool. */
  paste(band: Image, image: Image, start: number): void {
    const { height: rows, width, channels } = extentOf(band);
    const row = width * channels;
    this.backend.copy(band, 0, image, start * row, rows * row);
    this.scratch.give(band);
  }

  /** At least `count` zeros. The pool does not reuse a tensor that was too small. */
  #zeroRow(count: number): Image {
    if (!this.#zeros || at(this.#zeros.dims, 0) < count) this.#zeros = this.scratch.zero([count]);
    return this.#zeros;
  }
}

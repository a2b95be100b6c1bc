import { requireFinite } from '../../../pipeline/latents';
import type { Tile } from './tiles';

/**
 * The number for white. Up to four tiles share a pixel and each part is rounded, so the sum may
 * come out two steps too high.
 */
const white = 2 ** 16 - 1 - 2;

/** CPU bytes of a clip's frames until all their tiles are added. */
export function canvasBytes(height: number, width: number, frames: number): number {
  return frames * 3 * height * width * Uint16Array.BYTES_PER_ELEMENT;
}

/**
 * The frames of a clip, summed tile by tile in 16-bit fixed point over the decoder's range: half the memory of
 * floats, and 256 times finer than the 8 bits of a video.
 */
export class ClipCanvas {
  readonly #frames = new Map<number, Uint16Array>();

  /**
   * @param scale pixels per latent position
   * @param range black and white as floats
   */
  constructor(
    readonly height: number,
    readonly width: number,
    readonly scale: number,
    readonly range: readonly [black: number, white: number],
  ) {}

  /**
   * Adds a tile's share to frame `index`.
   *
   * @param pixels planar RGB of the tile, within the range
   * @throws KinoraError `LATENTS_NOT_FINITE` for what integers cannot hold
   */
  add(index: number, tile: Tile, pixels: Float32Array): void {
    requireFinite(pixels, `Frame ${index + 1} of the decoded clip`);
    const { height, width, scale, range } = this;
    const frame = this.#frames.get(index) ?? new Uint16Array(3 * height * width);
    this.#frames.set(index, frame);
    const { rowShares, columnShares } = tile;
    if (pixels.length !== 3 * rowShares.length * columnShares.length) {
      throw new TypeError(`${pixels.length} values are not the pixels of the tile`);
    }
    const [rows, columns] = [rowShares.length, columnShares.length];
    const [top, left] = [tile.top * scale, tile.left * scale];
    const [black, top1] = range;
    const toFixed = white / (top1 - black);
    for (let c = 0; c < 3; c++) {
      for (let y = 0; y < rows; y++) {
        const weight = (rowShares[y] as number) * toFixed;
        if (weight === 0) continue;
        const source = (c * rows + y) * columns;
        const target = (c * height + top + y) * width + left;
        for (let x = 0; x < columns; x++) {
          const part =
            ((pixels[source + x] as number) - black) * weight * (columnShares[x] as number);
          frame[target + x] = (frame[target + x] as number) + Math.round(part);
        }
      }
    }
  }

  /** Frame `index` as floats; removes it from the canvas. */
  take(index: number): Float32Array<ArrayBuffer> {
    const frame = this.#frames.get(index);
    if (!frame) throw new TypeError(`frame ${index} has no tile`);
    this.#frames.delete(index);
    const [black, top] = this.range;
    const out = new Float32Array(frame.length);
    for (let i = 0; i < out.length; i++) {
      out[i] = Math.min(top, black + ((frame[i] as number) / white) * (top - black));
    }
    return out;
  }
}

import { requireFinite } from '../../../pipeline/latents';
import type { Tiling } from '../../../pipeline/memory/memory-plan';
import { decoderBlocks, type VaeConfig } from '../config-schemas';
import type { LatentFrameSize } from './decoder';

/** Position of a tile in its frame, and its weight in each pixel row and column. */
export interface Tile {
  /** In latent positions. */
  readonly top: number;
  readonly left: number;
  /** 0…1; over all tiles the shares of a pixel add up to 1. */
  readonly rowShares: Float32Array;
  readonly columnShares: Float32Array;
}

/** Size of each tile of a grid. */
export function tileSize(
  latentHeight: number,
  latentWidth: number,
  { rows, columns, overlap }: Tiling,
): LatentFrameSize {
  return {
    latentHeight: tileExtent(latentHeight, rows, overlap),
    latentWidth: tileExtent(latentWidth, columns, overlap),
  };
}

function tileExtent(extent: number, count: number, overlap: number): number {
  return Math.ceil((extent + (count - 1) * overlap) / count);
}

/** First position of each tile along an axis, the first at 0 and the last up to the end. */
function tileStarts(extent: number, tile: number, count: number): number[] {
  const step = count === 1 ? 0 : (extent - tile) / (count - 1);
  return Array.from({ length: count }, (_, i) => Math.round(i * step));
}

/** Whether an axis can be cut into `count` tiles that differ and share at least `overlap` positions. */
export function canCut(extent: number, count: number, overlap: number): boolean {
  if (count === 1) return true;
  const tile = tileExtent(extent, count, overlap);
  const starts = tileStarts(extent, tile, count);
  return starts.every((start, i) => {
    const next = starts[i + 1];
    return next === undefined || (next > start && start + tile - next >= overlap);
  });
}

/**
 * How far the up blocks see, in latent positions: half their receptive field. Each 3×3 convolution
 * reaches one pixel of its level further.
 */
function upBlocksReach(config: VaeConfig): number {
  let reach = 0;
  let pixel = 1;
  for (const [index, { resnets, space }] of decoderBlocks(config).entries()) {
    // The first level's residual blocks are no part of a tile.
    if (index > 0) reach += 2 * resnets.length * pixel;
    if (!space) continue;
    pixel /= 2;
    reach += pixel;
  }
  return reach + pixel;
}

/** The least overlap with which tiles change nothing: no pixel comes from a tile whose edge reaches it. */
export function exactOverlap(config: VaeConfig): number {
  return Math.ceil(2 * upBlocksReach(config) + rampWidth);
}

/** Latent positions over which neighbours blend, in the middle of what they share. */
const rampWidth = 1;

/**
 * The tiles of a grid, row by row. Neighbours blend linearly in the middle of what they share, where
 * both are furthest from their edges, beyond which they see zeros.
 *
 * @param scale pixels per latent position
 * @throws TypeError for a grid that the frame cannot be cut into
 */
export function tilesOf(size: LatentFrameSize, tiling: Tiling, scale: number): Tile[] {
  const { latentHeight, latentWidth } = size;
  const { rows, columns, overlap } = tiling;
  const cut = canCut(latentHeight, rows, overlap) && canCut(latentWidth, columns, overlap);
  if (!cut || overlap < rampWidth) {
    const grid = `${rows}×${columns} tiles with an overlap of ${overlap}`;
    throw new TypeError(`${grid} do not fit ${latentHeight}×${latentWidth} positions`);
  }
  const tile = tileSize(latentHeight, latentWidth, tiling);
  const vertical = axis(latentHeight, tile.latentHeight, rows, scale);
  const horizontal = axis(latentWidth, tile.latentWidth, columns, scale);
  return vertical.flatMap(({ start: top, shares: rowShares }) =>
    horizontal.map(({ start: left, shares: columnShares }) => ({
      top,
      left,
      rowShares,
      columnShares,
    })),
  );
}

function axis(extent: number, tile: number, count: number, scale: number) {
  const starts = tileStarts(extent, tile, count);
  /** Share of the later one of two neighbours at a pixel of the whole axis. */
  const later = (earlierStart: number, laterStart: number, pixel: number) => {
    const middle = (laterStart + earlierStart + tile) / 2;
    const way = ((pixel + 0.5) / scale - middle) / rampWidth + 0.5;
    return Math.min(1, Math.max(0, way));
  };
  return starts.map((start, i) => {
    const [before, after] = [starts[i - 1], starts[i + 1]];
    const shares = Float32Array.from({ length: tile * scale }, (_, p) => {
      const pixel = start * scale + p;
      const since = before === undefined ? 1 : later(before, start, pixel);
      const until = after === undefined ? 0 : later(start, after, pixel);
      return since - until;
    });
    return { start, shares };
  });
}

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

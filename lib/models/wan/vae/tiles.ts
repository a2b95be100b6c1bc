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

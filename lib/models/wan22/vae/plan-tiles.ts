import type { VaeConfig } from '../config';
import type { LatentFrameSize } from './decoder';
import { latentPartMemory, tileMemory, vaeDecoderMemory } from './memory';
import type { VaeMemory } from './memory-walk';
import { canCut, type Tiling, tileSize } from './tiles';

/**
 * Overlaps that a plan may choose, the better one first, and up to how much work, as a multiple of
 * that for whole frames. With random weights the result differs from that of whole frames by a
 * rel-RMS of 2e-5 with 8 positions and 3e-3 with 4; with 2 it would be 2e-2 and more
 * (`tiled-decoder.test.ts`).
 */
const overlaps = [
  { overlap: 8, mostWork: 2.5 },
  { overlap: 4, mostWork: 5 },
] as const;

/**
 * How to decode within a budget: whole frames where they fit, else the grid with the fewest
 * positions to decode, which cost FLOPs alike (reference §5.7). Of the overlaps the widest with
 * which anything fits is taken.
 *
 * @param budget device bytes that the decoder may take
 * @param largestBuffer most of them that one buffer may have
 * @returns null where not even the smallest tiles that are worth it fit
 */
export function planTiles(
  config: VaeConfig,
  latentHeight: number,
  latentWidth: number,
  budget: number,
  largestBuffer: number = Number.POSITIVE_INFINITY,
): Tiling | 'full' | null {
  const fits = ({ total, largest }: VaeMemory) => total <= budget && largest <= largestBuffer;
  if (fits(vaeDecoderMemory(config, latentHeight, latentWidth))) return 'full';
  if (!fits(latentPartMemory(config, latentHeight, latentWidth))) return null;
  for (const { overlap, mostWork } of overlaps) {
    const grids: { tiling: Tiling; work: number }[] = [];
    for (let rows = 1; rows < latentHeight; rows++) {
      for (let columns = 1; columns < latentWidth; columns++) {
        const tiling = { rows, columns, overlap };
        const work = tilingWork({ latentHeight, latentWidth }, tiling);
        const cut = canCut(latentHeight, rows, overlap) && canCut(latentWidth, columns, overlap);
        // One tile would be untiled by its number and other by its bits.
        if (cut && work <= mostWork && rows * columns > 1) grids.push({ tiling, work });
      }
    }
    // Of equal work the fewer tiles.
    const count = ({ tiling }: { tiling: Tiling }) => tiling.rows * tiling.columns;
    grids.sort((a, b) => a.work - b.work || count(a) - count(b));
    for (const { tiling } of grids) {
      const tile = tileSize(latentHeight, latentWidth, tiling);
      if (fits(tileMemory(config, tile.latentHeight, tile.latentWidth))) return tiling;
    }
  }
  return null;
}

/** Positions of all tiles together, as a multiple of the frame's. */
function tilingWork({ latentHeight, latentWidth }: LatentFrameSize, tiling: Tiling): number {
  const tile = tileSize(latentHeight, latentWidth, tiling);
  const positions = tiling.rows * tiling.columns * tile.latentHeight * tile.latentWidth;
  return positions / (latentHeight * latentWidth);
}

/** What a decode costs, as a multiple of that of whole frames. */
export function decodeWork(
  { height, width }: { readonly height: number; readonly width: number },
  tiles: Tiling | 'full',
): number {
  if (tiles === 'full') return 1;
  return tilingWork({ latentHeight: height, latentWidth: width }, tiles);
}

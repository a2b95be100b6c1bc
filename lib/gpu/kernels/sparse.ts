import type { SparseSetting } from '../../contract/kernel-setting';
import type { AttentionVariant } from './attention';

/** A clip's tokens: frames of latents one after another. */
export interface ClipTokens {
  readonly frames: number;
  readonly tokensPerFrame: number;
}

/**
 * Which tokens see each other. `window`: those of frames at most `frames` apart. `radial`: the further two frames
 * are apart, the nearer two tokens must lie within their frames; the reach halves whenever the distance doubles
 * (Li et al., [arXiv:2506.19852](https://arxiv.org/abs/2506.19852)). The first frame, the given image, is always seen.
 */
export type SparseMask =
  | { readonly kind: 'window'; readonly frames: number }
  | { readonly kind: 'radial' };

/** The masks that can be set. A window reaches four frames of latents to each side, two thirds of a second. */
export const sparseMasks: Readonly<Record<SparseSetting, SparseMask>> = {
  radial: { kind: 'radial' },
  window: { kind: 'window', frames: 4 },
};

/** Neighbouring queries that are computed together; their tiles begin at the first of them. */
export interface QueryRun {
  readonly start: number;
  readonly count: number;
}

/** Of a run of queries. */
export interface RunTiles {
  /** Of the list, its first tile of queries. */
  readonly first: number;
  /** Pairs of tiles of queries and keys that the mask leaves. */
  readonly seen: number;
  /** Pairs of tiles that there are. */
  readonly pairs: number;
}

/** Tiles of keys that each tile of queries sees. */
export interface TileList {
  /**
   * The place of each tile's ranges within this array and the end of the last; then the ranges, in tiles of keys:
   * first and count.
   */
  readonly words: Int32Array<ArrayBuffer>;
  /** Share of the pairs of tiles that are computed, 0 to 1: 1 − this share of the time is saved. */
  readonly density: number;
  /** In the order of the runs. */
  readonly runs: readonly RunTiles[];
}

/**
 * The tiles that a mask leaves, for the tiles of a variant: a tile with any visible pair of tokens is computed as a
 * whole.
 *
 * @param runs all tokens at once when absent
 * @throws RangeError for a clip without tokens
 */
export function tileList(
  clip: ClipTokens,
  mask: SparseMask,
  { queries, keys }: Pick<AttentionVariant, 'queries' | 'keys'>,
  runs?: readonly QueryRun[],
): TileList {
  const tokens = clip.frames * clip.tokensPerFrame;
  if (!(tokens >= 1)) throw new RangeError('a clip has at least one token');
  const tilesOf = (count: number) => Math.ceil(count / queries);
  const columns = Math.ceil(tokens / keys);
  const keyParts = Array.from({ length: columns }, (_, tile) => partsOf(clip, tile * keys, keys));
  const wanted = runs ?? [{ start: 0, count: tokens }];
  const rows = wanted.reduce((sum, { count }) => sum + tilesOf(count), 0);
  const starts: number[] = [];
  const ranges: number[] = [];
  const listed = wanted.map(({ start, count }): RunTiles => {
    const first = starts.length;
    let seen = 0;
    for (let query = 0; query < count; query += queries) {
      starts.push(rows + 1 + ranges.length);
      const parts = partsOf(clip, start + query, Math.min(queries, count - query));
      let open = false;
      for (const [column, others] of keyParts.entries()) {
        const sight = parts.some((part) => others.some((other) => sees(clip, mask, part, other)));
        if (sight && !open) ranges.push(column, 0);
        if (sight) ranges[ranges.length - 1] = (ranges.at(-1) ?? 0) + 1;
        if (sight) seen++;
        open = sight;
      }
    }
    return { first, seen, pairs: tilesOf(count) * columns };
  });
  starts.push(rows + 1 + ranges.length);
  const seen = listed.reduce((sum, run) => sum + run.seen, 0);
  return {
    words: Int32Array.of(...starts, ...ranges),
    density: seen / (rows * columns),
    runs: listed,
  };
}

/** Neighbouring tokens of one frame. */
interface Part {
  readonly frame: number;
  /** Within the frame. */
  readonly first: number;
  readonly last: number;
}

function partsOf({ frames, tokensPerFrame }: ClipTokens, start: number, count: number): Part[] {
  const end = Math.min(start + count, frames * tokensPerFrame);
  const parts: Part[] = [];
  for (let token = start; token < end; ) {
    const frame = Math.floor(token / tokensPerFrame);
    const next = Math.min(end, (frame + 1) * tokensPerFrame);
    const first = token - frame * tokensPerFrame;
    parts.push({ frame, first, last: first + next - token - 1 });
    token = next;
  }
  return parts;
}

/** Whether any token of `a` sees any of `b`. */
function sees({ tokensPerFrame }: ClipTokens, mask: SparseMask, a: Part, b: Part): boolean {
  if (b.frame === 0) return true;
  const apart = Math.abs(a.frame - b.frame);
  if (mask.kind === 'window') return apart <= mask.frames;
  const nearest = Math.max(0, a.first - b.last, b.first - a.last);
  return visibleTokens(tokensPerFrame, apart, nearest);
}

/** Whether tokens see each other that lie `distance` apart within frames that are `apart`. */
function visibleTokens(tokensPerFrame: number, apart: number, distance: number): boolean {
  const octave = 2 ** Math.floor(Math.log2(Math.max(apart, 1)));
  if (distance + 1 <= tokensPerFrame / octave) return true;
  // Where the reach is below one token, every so many frames is seen at the same place.
  return distance === 0 && apart % Math.ceil(octave / tokensPerFrame) === 0;
}

import { describe, expect, test } from 'vitest';
import { type SparseMask, tileList } from './sparse';

const clip = { frames: 9, tokensPerFrame: 50 };
const tokens = clip.frames * clip.tokensPerFrame;
const tiles = { queries: 16, keys: 32 };

/** The pairs of tiles of a list, as `row:column`. */
function listed(mask: SparseMask): Set<string> {
  const { words } = tileList(clip, mask, tiles);
  const pairs = new Set<string>();
  for (let row = 0; row < Math.ceil(tokens / tiles.queries); row++) {
    for (let at = words[row] ?? 0; at < (words[row + 1] ?? 0); at += 2) {
      for (let i = 0; i < (words[at + 1] ?? 0); i++) pairs.add(`${row}:${(words[at] ?? 0) + i}`);
    }
  }
  return pairs;
}

/** The pairs of tiles that have a pair of visible tokens. */
function touched(visible: (apart: number, distance: number) => boolean): Set<string> {
  const pairs = new Set<string>();
  for (let query = 0; query < tokens; query++) {
    for (let key = 0; key < tokens; key++) {
      const apart = Math.abs(Math.floor(query / 50) - Math.floor(key / 50));
      if (key >= 50 && !visible(apart, Math.abs((query % 50) - (key % 50)))) continue;
      pairs.add(`${Math.floor(query / tiles.queries)}:${Math.floor(key / tiles.keys)}`);
    }
  }
  return pairs;
}

describe('lists of tiles', () => {
  test('have every tile that a window touches, and no other', () => {
    expect(listed({ kind: 'window', frames: 2 })).toEqual(touched((apart) => apart <= 2));
  });

  test('the reach of a radial mask halves with each doubling of the distance', () => {
    const reach = [50, 50, 25, 25, 12.5, 12.5, 12.5, 12.5, 6.25];
    const visible = (apart: number, distance: number) => distance + 1 <= (reach[apart] ?? 0);
    expect(listed({ kind: 'radial' })).toEqual(touched(visible));
  });

  test('runs of queries have tiles of their own, from the first of them on', () => {
    const runs = [
      { start: 0, count: 50 },
      { start: 50, count: 400 },
    ];
    const { words, runs: listed, density } = tileList(clip, { kind: 'radial' }, tiles, runs);
    expect(listed.map(({ first }) => first)).toEqual([0, 4]);
    const counted = listed.map(({ first, pairs }) => {
      let seen = 0;
      for (let row = first; row < first + pairs / 15; row++) {
        for (let at = words[row] ?? 0; at < (words[row + 1] ?? 0); at += 2) {
          seen += words[at + 1] ?? 0;
        }
      }
      return seen;
    });
    expect(listed.map(({ seen }) => seen)).toEqual(counted);
    expect(listed.map(({ pairs }) => pairs)).toEqual([4 * 15, 25 * 15]);
    expect(density).toBe(((counted[0] ?? 0) + (counted[1] ?? 0)) / (29 * 15));
    // Tiles of the second run begin at its own first query.
    const single = tileList(clip, { kind: 'radial' }, tiles, [{ start: 50, count: 16 }]);
    const row = (list: Int32Array, of: number) => [...list.slice(list[of], list[of + 1])];
    expect(row(words, 4)).toEqual(row(single.words, 0));
  });

  test('the share that is left at 121 frames of 1280×704', () => {
    const full = { frames: 31, tokensPerFrame: 880 };
    const density = (mask: SparseMask) =>
      tileList(full, mask, { queries: 64, keys: 64 }).density.toFixed(3);
    expect({
      all: density({ kind: 'window', frames: 30 }),
      window: density({ kind: 'window', frames: 4 }),
      radial: density({ kind: 'radial' }),
    }).toMatchInlineSnapshot(`
      {
        "all": "1.000",
        "radial": "0.520",
        "window": "0.300",
      }
    `);
  });
});

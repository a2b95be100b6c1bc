import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { parseManifest } from '../../contract';
import { EasyCache, magCacheSkips } from '.';

const file = new URL('../../../public/models/wan2.2-ti2v-5b.json', import.meta.url);
const { magcache } = parseManifest(JSON.parse(await readFile(file, 'utf8')));

describe('the steps that MagCache skips with the ratios of the 5B', () => {
  // By hand from the published rule; upstream also skips the last step, which is always computed here.
  test.each([
    [
      50,
      [10, 11, 13, 14, 16, 17, 19, 20, 22, 23, 25, 26, 28, 29, 31, 32, 34, 35, 37, 39, 41, 43, 45],
    ],
    [30, [6, 7, 9, 10, 12, 13, 15, 16, 18, 19, 21, 23, 25]],
    [20, [4, 5, 7, 8, 10, 11, 13, 14, 16]],
    [1, []],
  ])('of %i steps', (steps, expected) => {
    if (!magcache) throw new Error('the manifest has no ratios');
    for (const branch of magCacheSkips(steps, magcache)) {
      expect(branch).toHaveLength(steps);
      expect(branch.flatMap((skips, step) => (skips ? [step] : []))).toEqual(expected);
    }
  });

  test('each branch has ratios of its own', () => {
    const settings = { ratios: [0.99, 0.5, 0.99, 0.99], computedShare: 0, mostSkips: 9 };
    const [conditional, other] = magCacheSkips(3, { ...settings, threshold: 0.06 });
    expect(conditional).toEqual([true, true, false]);
    expect(other).toEqual([true, false, false]);
  });
});

describe('EasyCache', () => {
  const values = (...list: number[]) => Float32Array.from(list);

  test('measures the slope, sums the predicted change and computes again at the threshold', () => {
    const cache = new EasyCache({ steps: 8, threshold: 0.2, computedShare: 0.2 });
    // The first ⌈0.2·8⌉ steps are computed.
    expect(cache.reuse(0, values(10, -10), 2)).toBeNull();
    cache.keep(values(10, -10), [values(4, -4), values(1, 1)]);
    expect(cache.reuse(1, values(9, -9), 2)).toBeNull();
    cache.keep(values(9, -9), [values(5, -5), values(2, 2)]);
    // k = mean|Δout| / mean|Δx| = 1; predicted change 1·0.5/5 = 0.1 < 0.2: out = x + out' − x'.
    expect(cache.reuse(2, values(8.5, -8.5), 2)).toEqual([values(4.5, -4.5), values(1.5, 2.5)]);
    // 0.1 + 0.35/5 = 0.17 < 0.2, with one branch only.
    expect(cache.reuse(3, values(8, -8.3), 1)).toEqual([values(4, -4.3).map(Math.fround)]);
    // 0.17 + 0.2/5 ≥ 0.2: computed, and the sum starts again.
    expect(cache.reuse(4, values(7.8, -8.1), 2)).toBeNull();
    cache.keep(values(7.8, -8.1), [values(5, -5), values(2, 2)]);
    // k = 0 between steps 1 and 4: nothing is predicted to change.
    expect(cache.reuse(5, values(1, -1), 2)).not.toBeNull();
    expect(cache.reuse(6, values(0, 0), 2)).not.toBeNull();
    // The last step is computed in any case.
    expect(cache.reuse(7, values(0, 0), 2)).toBeNull();
  });

  test('computes where nothing is known yet, as after an interruption', () => {
    const cache = new EasyCache({ steps: 8, threshold: 1, computedShare: 0 });
    expect(cache.reuse(3, values(1), 1)).toBeNull();
    cache.keep(values(1), [values(1)]);
    expect(cache.reuse(4, values(2), 1)).toBeNull();
    cache.keep(values(2), [values(1.5)]);
    expect(cache.reuse(5, values(2.5), 1)).toEqual([values(2)]);
    // One branch was computed: it does not serve for two.
    expect(cache.reuse(6, values(2.5), 2)).toBeNull();
  });
});

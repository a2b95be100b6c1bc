import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { parseManifest } from '../../contract';
import { magCacheSkips } from '.';

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

import { describe, expect, it } from 'vitest';
import { ApiError } from '../../lib/contract/v3';
import { inBatches } from './batches';

/** Doubles numbers, and keeps what was asked for together. */
function doubler(refuse: (item: number) => Error | null = () => null) {
  const batches: number[][] = [];
  const double = inBatches(async (items: readonly number[]) => {
    batches.push([...items]);
    await Promise.resolve();
    for (const item of items) {
      const error = refuse(item);
      if (error) throw error;
    }
    return items.map((item) => item * 2);
  });
  return { batches, double };
}

describe('writing in batches', () => {
  it('writes together what comes in one turn of the loop, or meanwhile, in order', async () => {
    let meanwhile: Promise<readonly number[]> | undefined;
    const { batches, double } = doubler(() => {
      meanwhile ??= Promise.all([4, 5].map((item) => double(item)));
      return null;
    });
    expect(await Promise.all([1, 2, 3].map(double))).toEqual([2, 4, 6]);
    expect(await meanwhile).toEqual([8, 10]);
    expect(batches).toEqual([
      [1, 2, 3],
      [4, 5],
    ]);
  });

  it('bounds a batch', async () => {
    const { batches, double } = doubler();
    await Promise.all(Array.from({ length: 150 }, (_, item) => double(item)));
    expect(batches.map(({ length }) => length)).toEqual([64, 64, 22]);
  });

  it('lets one that is refused take no other with it', async () => {
    const { batches, double } = doubler((item) => (item === 3 ? new Error('no three') : null));
    const all = await Promise.allSettled([1, 2, 3, 4].map(double));
    expect(all).toMatchObject([
      { value: 2 },
      { value: 4 },
      { reason: new Error('no three') },
      { value: 8 },
    ]);
    expect(batches).toEqual([[1, 2, 3, 4], [1], [2], [3], [4]]);
    expect(await double(5)).toBe(10);
  });

  it('tries no one alone while the storage is down, and goes on after it', async () => {
    let isDown = true;
    const { batches, double } = doubler(() => (isDown ? new ApiError('STORAGE_DOWN') : null));
    const all = await Promise.allSettled([1, 2, 3].map(double));
    expect(all.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
    expect(batches).toEqual([[1, 2, 3]]);
    isDown = false;
    expect(await double(4)).toBe(8);
  });

  it('believes no write that is not whole', async () => {
    const lossy = inBatches(async (items: readonly number[]) => items.slice(1));
    await expect(lossy(1)).rejects.toThrow('not written whole');
  });
});

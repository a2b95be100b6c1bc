import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
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

  it('believes no write that is not answered whole, and makes it once', async () => {
    let writes = 0;
    const lossy = inBatches(async (items: readonly number[]) => {
      writes += 1;
      return items.slice(1);
    });
    const all = await Promise.allSettled([1, 2].map(lossy));
    const refused = { reason: new Error('A batch was not answered whole.') };
    expect(all).toMatchObject([refused, refused]);
    expect(writes).toBe(1);
  });

  it('waits a moment for as many as the last time, and for nobody after one alone', async () => {
    // The moment is over when the test says so.
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    try {
      const { batches, double } = doubler();
      await Promise.all([1, 2].map(double));
      const late = [double(3)];
      await nextTurn();
      await nextTurn();
      late.push(double(4));
      expect(batches).toHaveLength(1);
      await vi.advanceTimersByTimeAsync(10);
      expect(await Promise.all(late)).toEqual([6, 8]);
      const alone = double(5);
      await vi.advanceTimersByTimeAsync(10);
      await alone;
      await double(6);
      expect(batches).toEqual([[1, 2], [3, 4], [5], [6]]);
    } finally {
      vi.useRealTimers();
    }
  });
});

import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Checkpoint } from './checkpoint';
import { clocked, readSeconds } from './read-clock';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] });
});

afterEach(() => {
  vi.useRealTimers();
});

/** A checkpoint whose reads take a time; `missing` fails after it. */
const slow = (ms: number): Checkpoint => {
  const read = async (name: string) => {
    await new Promise((resolve) => setTimeout(resolve, ms));
    if (name === 'missing') throw new Error('There is no tensor.');
    return new Float32Array([1]);
  };
  return {
    names: () => ['a'],
    has: () => true,
    shape: () => [1],
    bytes: () => 4,
    dtype: () => 'F32',
    read,
    readRows: read,
    readStored: async () => new Map(),
  };
};

test('reads of a component count once where they overlap, apart from those of others', async () => {
  const [one, other] = [clocked('one', slow(60)), clocked('other', slow(20))];
  const reads = Promise.all([one.read('a'), one.readRows('b', [0]), other.read('a')]);
  await vi.advanceTimersByTimeAsync(60);
  await reads;
  await vi.advanceTimersByTimeAsync(50);
  expect([...one.names(), one.shape('a')]).toEqual(['a', [1]]);
  expect(readSeconds().one).toBeCloseTo(0.06, 6);
  expect(readSeconds().other).toBeCloseTo(0.02, 6);
  const missing = expect(one.read('missing')).rejects.toThrow('There is no tensor.');
  await vi.advanceTimersByTimeAsync(60);
  await missing;
  const read = one.read('a');
  await vi.advanceTimersByTimeAsync(60);
  expect(await read).toEqual(new Float32Array([1]));
  expect(readSeconds().one).toBeCloseTo(0.18, 6);
  expect(readSeconds().other).toBeCloseTo(0.02, 6);
});

import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Checkpoint } from './checkpoint';
import { clocked, readSeconds } from './read-clock';

/** A checkpoint whose reads take a time; `missing` fails after it. */
const slow = (ms: number): Checkpoint => {
  const read = async (name: string) => {
    await delay(ms);
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
  const [text, vae] = [clocked('text', slow(60)), clocked('vae', slow(20))];
  await Promise.all([text.read('a'), text.readRows('b', [0]), vae.read('a')]);
  await delay(50);
  expect([...text.names(), text.shape('a')]).toEqual(['a', [1]]);
  const first = readSeconds();
  expect(first.text).toBeGreaterThan(0.05);
  expect(first.text).toBeLessThan(0.11);
  expect(first.vae).toBeGreaterThan(0.015);
  expect(first.vae).toBeLessThan(first.text ?? 0);
  await expect(text.read('missing')).rejects.toThrow('There is no tensor.');
  expect(await text.read('a')).toEqual(new Float32Array([1]));
  expect(readSeconds().text).toBeGreaterThan((first.text ?? 0) + 0.1);
  expect(readSeconds().vae).toBe(first.vae);
});

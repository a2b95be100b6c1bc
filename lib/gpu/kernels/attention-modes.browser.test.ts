import { afterAll, beforeAll, expect, test } from 'vitest';
import { createBackend, relativeRms } from '..';
import type { Backend } from '../backend';
import type { AttentionVariant } from './attention';
import { tileList } from './sparse';
import { attend, expectedOf, randomCall } from './testing/attention';

const small: AttentionVariant = { queries: 16, keys: 32, shared: 'f32' };
const shape = { q: 'f16', kv: 'f16', out: 'f32', bias: 'none', sparse: false } as const;

let backend: Backend;
beforeAll(async () => {
  backend = await createBackend('webgpu');
});
afterAll(() => backend.dispose());

test('sparse attention sees the listed tiles only, in chunks as well', async () => {
  const clip = { frames: 9, tokensPerFrame: 23 };
  const call = randomCall(207, 207, 1, 16);
  const tiles = tileList(clip, { kind: 'window', frames: 1 }, small);
  const { words, density } = tiles;
  const bias = new Float32Array(207 * 207).fill(Number.NEGATIVE_INFINITY);
  let pairs = 0;
  for (let row = 0; row < 207; row++) {
    const tile = Math.floor(row / 16);
    for (let at = words[tile] ?? 0; at < (words[tile + 1] ?? 0); at += 2) {
      const first = (words[at] ?? 0) * 32;
      const end = Math.min(207, first + (words[at + 1] ?? 0) * 32);
      bias.fill(0, row * 207 + first, row * 207 + end);
      pairs += end - first;
    }
  }
  expect(pairs / 207 ** 2).toBeCloseTo(density, 1);
  expect(density).toBeLessThan(0.7);
  const expected = expectedOf({ ...call, bias }, shape);
  const sparse = { ...shape, headSize: 16, sparse: true };
  const whole = await attend(backend, small, sparse, call, { tiles });
  expect(relativeRms(whole, expected)).toBeLessThan(1e-5);
  expect(await attend(backend, small, sparse, call, { tiles, chunk: 48 })).toEqual(whole);
});

test('logits of 8-bit integers err by less than 3 %, whatever the mean of the keys', async () => {
  const random = randomCall(37, 333, 2, 40);
  const calls = {
    random,
    // A bias of the keys would take most of the 8 bits.
    biased: { ...random, k: random.k.map((value, i) => value + 6 * Math.cos(i % 80)) },
    wide: { ...random, q: random.q.map((value) => 3 * value) },
  };
  for (const call of Object.values(calls)) {
    const result = await attend(backend, small, { ...shape, headSize: 40 }, call, { fast: true });
    const error = relativeRms(result, expectedOf(call, shape));
    expect(error).toBeLessThan(3e-2);
    // Integers err, so that an exact result would mean that they were not used.
    expect(error).toBeGreaterThan(1e-4);
  }
});

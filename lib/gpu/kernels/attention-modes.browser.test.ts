import { afterAll, expect, test } from 'vitest';
import { createBackend, relativeRms } from '..';
import type { AttentionVariant } from './choice';
import { attend, expectedOf, randomCall } from './testing/attention';

const small: AttentionVariant = { queries: 16, keys: 64, shared: 'f32' };
const shape = { q: 'f16', kv: 'f16', out: 'f32', bias: 'none' } as const;

const backend = await createBackend('webgpu');
afterAll(() => backend.dispose());

test('8-bit integers err by less than 2.5 %, whatever the mean of the keys and of the values', {
  tags: ['full'],
}, async () => {
  const random = randomCall(37, 333, 2, 40);
  const calls = {
    random,
    // A bias of the keys would take most of the 8 bits.
    biased: { ...random, k: random.k.map((value, i) => value + 6 * Math.cos(i % 80)) },
    shifted: { ...random, v: random.v.map((value, i) => value + 6 * Math.cos(i % 80)) },
    wide: { ...random, q: random.q.map((value) => 3 * value) },
    // Less than a word of keys: nothing may be written behind the last head.
    few: randomCall(5, 3, 2, 40),
  };
  for (const call of Object.values(calls)) {
    const result = await attend(backend, small, { ...shape, headSize: 40 }, call, { fast: true });
    const error = relativeRms(result, expectedOf(call, shape));
    expect(error).toBeLessThan(2.5e-2);
    // Integers err, so that an exact result would mean that they were not used.
    expect(error).toBeGreaterThan(1e-4);
  }
});

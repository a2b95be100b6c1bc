import { afterAll, expect, test } from 'vitest';
import { createBackend, relativeRms } from '..';
import type { AttentionVariant } from './attention';
import { attend, expectedOf, randomCall } from './testing/attention';

const small: AttentionVariant = { queries: 16, keys: 32, shared: 'f32' };
const shape = { q: 'f16', kv: 'f16', out: 'f32', bias: 'none' } as const;

const backend = await createBackend('webgpu');
afterAll(() => backend.dispose());

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

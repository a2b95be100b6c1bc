import { afterAll, describe, expect, test } from 'vitest';
import { createBackend, relativeRms } from '..';
import { Scope } from '../backend';
import { attentionDispatch, attentionKernel, attentionVariants } from './attention';
import type { AttentionShape, AttentionVariant } from './choice';
import {
  type Attended,
  attend,
  expectedOf,
  type Manner,
  normal,
  randomCall,
} from './testing/attention';

/** Compiles in about a second on a GPU in software. */
const small: AttentionVariant = { queries: 16, keys: 32, shared: 'f32' };

const f32 = { q: 'f32', kv: 'f32', out: 'f32', bias: 'none' } as const;
const f16 = { ...f32, q: 'f16', kv: 'f16', out: 'f16' } as const;
const least = { workgroupBytes: 16384, threads: 256, bindingBytes: 2 ** 27, storageBuffers: 8 };

const backend = await createBackend('webgpu');
afterAll(() => backend.dispose());

const run = (
  variant: AttentionVariant,
  shape: Omit<AttentionShape, 'headSize'>,
  call: Attended,
  manner?: Manner,
) => attend(backend, variant, { ...shape, headSize: call.size }, call, manner);

const errorOf = async (...given: Parameters<typeof run>) =>
  relativeRms(await run(...given), expectedOf(given[2], given[1]));

describe('attention', () => {
  test('equals plain loops at odd sizes, whatever lies around its rows', async () => {
    const call = randomCall(37, 77, 3, 24);
    expect(await errorOf(small, f32, call)).toBeLessThan(1e-5);
    expect(await errorOf(small, f32, call, { headMajor: true, before: 5 })).toBeLessThan(1e-5);
    expect(await errorOf(small, f32, randomCall(1, 1, 1, 24), { before: 11 })).toBeLessThan(1e-5);
  });

  test('queries in chunks, and another tile of queries, give the same bits', async () => {
    const call = randomCall(37, 77, 2, 24);
    const whole = await run(small, f32, call);
    expect(await run(small, f32, call, { chunk: 7 })).toEqual(whole);
    expect(await run({ ...small, queries: 32 }, f32, call)).toEqual(whole);
  });

  test('equal logits give the mean of the values', async () => {
    const call = { ...randomCall(9, 333, 1, 24), k: new Float32Array(333 * 24).fill(3) };
    const result = await run(small, f32, call);
    for (let channel = 0; channel < 24; channel++) {
      let mean = 0;
      for (let key = 0; key < 333; key++) mean += (call.v[key * 24 + channel] ?? 0) / 333;
      expect(result[8 * 24 + channel]).toBeCloseTo(mean, 5);
    }
  });

  test('logits of ten thousand, and the largest f16, give finite and right results', async () => {
    const call = randomCall(9, 65, 2, 32);
    const large = { ...call, q: call.q.map((value) => value * 1e4) };
    const shape = { ...f16, bias: 'last' } as const;
    expect(await errorOf(small, shape, { ...large, lastBias: 2 })).toBeLessThan(5e-4);
    const [q, k, v] = [call.q, call.k, call.v].map((values) =>
      values.map((value) => 65504 * Math.sign(value)),
    );
    const largest = { ...call, q, k, v, lastBias: 2 } as Attended;
    const result = await run(small, shape, largest);
    expect(result.every((value) => Math.abs(value) <= 65504)).toBe(true);
    expect(relativeRms(result, expectedOf(largest, shape))).toBeLessThan(5e-4);
  });

  test('a number is added to the logits of the last key', async () => {
    const call = { ...randomCall(21, 67, 2, 32), lastBias: Math.log(445) };
    const shape = { ...f16, bias: 'last' } as const;
    expect(await errorOf(small, shape, call, { headMajor: true })).toBeLessThan(5e-4);
  });

  test('a matrix is added to the logits; what it excludes has no weight', async () => {
    const bias = normal(19 * 40, 7).map((value, i) => (i % 40 < 9 ? -3.4e38 : value));
    const call = { ...randomCall(19, 40, 2, 8), bias };
    expect(await errorOf(small, { ...f32, bias: 'full' }, call)).toBeLessThan(1e-5);
  });

  test('what has no kernel is refused', async () => {
    expect(() => attentionKernel(small, { ...f32, headSize: 136 })).toThrow(RangeError);
    const scope = new Scope(backend);
    const tensor = scope.float32([1], 'activations');
    const view = { operand: { tensor }, firstRow: 0, headStride: 12, rowStride: 24 };
    const given = { q: view, k: view, v: view, out: view, heads: 2, rows: 1, keys: 1, scale: 1 };
    expect(() => attentionDispatch(small, { ...f32, headSize: 8 }, given)).toThrow('of out');
    scope.dispose();
  });

  test('the variants for a device with the guaranteed limits', { tags: ['full'] }, async () => {
    const variants = attentionVariants({ features: new Set(), limits: least });
    expect(variants.length).toBeGreaterThan(0);
    const call = randomCall(130, 197, 2, 128);
    const results = new Map<number, Float32Array>();
    for (const variant of variants) {
      const result = await run(variant, f16, call);
      expect(relativeRms(result, expectedOf(call, f16))).toBeLessThan(5e-4);
      // The order of sums depends on the tile of keys only.
      expect(result).toEqual(results.get(variant.keys) ?? result);
      results.set(variant.keys, result);
    }
  });
});

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createBackend, relativeRms } from '..';
import type { Backend } from '../backend';
import { type AttentionShape, type AttentionVariant, attentionVariants } from './attention';
import {
  type Attended,
  attend,
  expectedOf,
  type Manner,
  normal,
  randomCall,
} from './attention-testing';

/** Compiles in about a second on a GPU in software. */
const small: AttentionVariant = { queries: 16, keys: 32, shared: 'f32' };

const f32 = { q: 'f32', kv: 'f32', out: 'f32', bias: 'none', sparse: false } as const;
const f16 = { ...f32, q: 'f16', kv: 'f16', out: 'f16' } as const;

describe('attention', () => {
  let backend: Backend;
  beforeAll(async () => {
    backend = await createBackend('webgpu');
  });
  afterAll(() => backend.dispose());

  const errorOf = async (
    variant: AttentionVariant,
    shape: Omit<AttentionShape, 'headSize'>,
    call: Attended,
    manner?: Manner,
  ) =>
    relativeRms(
      await attend(backend, variant, { ...shape, headSize: call.size }, call, manner),
      expectedOf(call, shape),
    );

  test('equals plain loops at odd sizes, whatever lies around its rows', async () => {
    const call = randomCall(37, 77, 3, 24);
    expect(await errorOf(small, f32, call)).toBeLessThan(1e-5);
    expect(await errorOf(small, f32, call, { headMajor: true, before: 5 })).toBeLessThan(1e-5);
    expect(await errorOf(small, f32, randomCall(1, 1, 1, 24), { before: 11 })).toBeLessThan(1e-5);
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

  test('the variants for a device with the guaranteed limits', { tags: ['full'] }, async () => {
    const least = { workgroupBytes: 16384, threads: 256, bindingBytes: 2 ** 27 };
    const variants = attentionVariants({ features: new Set(), limits: least });
    expect(variants.length).toBeGreaterThan(0);
    const call = randomCall(130, 197, 2, 128);
    for (const variant of variants) {
      expect(await errorOf(variant, f16, call)).toBeLessThan(5e-4);
    }
  });
});

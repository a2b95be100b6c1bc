import { expect, test } from 'vitest';
import { relativeRms } from '..';
import type { LinearShape, LinearVariant } from './choice';
import { linearKernel, linearVariants, threadsOf } from './linear';
import { createDawnBackend } from './testing/dawn';
import { expectedLinear, linearOperands, runLinear } from './testing/linear';

const limits = { workgroupBytes: 16384, threads: 256, bindingBytes: 2 ** 27, storageBuffers: 8 };
const shape: LinearShape = {
  k: 96,
  n: 52,
  weight: 'q8',
  input: 'f16',
  output: 'f16',
  bias: true,
  rank: 0,
  epilogue: 'none',
};
const small: LinearVariant = {
  rows: 16,
  columns: 16,
  threadRows: 4,
  threadColumns: 4,
  shared: 'f16',
};

test('the smallest device has variants, of one type of workgroup memory where it has no other', () => {
  const variants = linearVariants({ features: new Set(), limits });
  expect(variants.length).toBeGreaterThan(4);
  expect(variants.every(({ shared }) => shared === 'f32')).toBe(true);
  const both = linearVariants({ features: new Set(['shader-f16']), limits });
  expect(both.slice(0, variants.length)).toEqual(variants);
  expect(both.slice(variants.length).map(({ shared }) => shared)).toContain('f16');
  for (const variant of both) {
    const { threads, workgroupBytes } = linearKernel(variant, { ...shape, n: 1024 });
    expect(threads).toBe(threadsOf(variant));
    expect(threads).toBeLessThanOrEqual(limits.threads);
    expect(workgroupBytes).toBeLessThanOrEqual(limits.workgroupBytes);
  }
});

test('the text in f16 differs from the text in f32 in the type of the tiles only', () => {
  const half = linearKernel(small, shape);
  const float = linearKernel({ ...small, shared: 'f32' }, shape);
  expect(half.needs).toEqual(['shader-f16']);
  expect(half.code).not.toBe(float.code);
  const tile = /^var<workgroup> tile.*$|^ *tile[XW]\[.*$/gm;
  const holes = (code: string) =>
    code.replace(tile, (line) => line.replaceAll('vec4<f16>', 'vec4<f32>'));
  expect(holes(half.code.replace('enable f16;\n', ''))).toBe(float.code);
  // What is stored in f32 may be larger than f16 can hold.
  const wide = linearKernel(small, { ...shape, input: 'f32' });
  expect(wide.needs).toEqual([]);
});

test('a result of few columns gets a narrow tile', () => {
  const wide = { ...small, rows: 128, columns: 128, threadRows: 8, threadColumns: 8 };
  const narrow = { ...wide, columns: 32 };
  const few = { ...shape, n: 20 };
  expect(linearKernel(wide, few)).toEqual(linearKernel(narrow, few));
  expect(linearKernel(wide, { ...shape, n: 100 }).threads).toBe(threadsOf(wide));
});

test('shapes that no kernel computes are refused', () => {
  const refused: readonly Partial<LinearShape>[] = [
    { k: 48 },
    { weight: 'f32', k: 30 },
    { n: 50 },
    { epilogue: 'gated' },
  ];
  for (const change of refused) {
    expect(() => linearKernel(small, { ...shape, ...change })).toThrow(RangeError);
  }
});

test('tiles in f16 are exact enough on lavapipe', { tags: ['full'] }, async ({ skip }) => {
  const backend = await createDawnBackend();
  if (typeof backend === 'string') return skip(backend);
  for (const weight of ['q8', 'q4', 'f32'] as const) {
    const one = { ...shape, weight };
    const operands = linearOperands(one, 37);
    const y = await runLinear(backend, small, one, operands, { first: 3 });
    expect(relativeRms(y, expectedLinear(one, operands))).toBeLessThan(5e-4);
  }
  await backend.dispose();
});

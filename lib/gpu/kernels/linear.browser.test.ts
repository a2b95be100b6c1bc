import { afterAll, expect, test } from 'vitest';
import { createBackend, relativeRms } from '..';
import type { LinearShape, LinearVariant } from './choice';
import { linearVariants } from './linear';
import { expectedLinear, linearOperands, runLinear } from './testing/linear';

const small: LinearVariant = {
  rows: 16,
  columns: 16,
  threadRows: 4,
  threadColumns: 4,
  shared: 'f32',
};

const plain: LinearShape = {
  k: 96,
  n: 52,
  weight: 'q8',
  input: 'f32',
  output: 'f32',
  bias: false,
  rank: 0,
  epilogue: 'none',
};

const backend = await createBackend('webgpu');
afterAll(() => backend.dispose());

const shapes: readonly Partial<LinearShape>[] = [
  { input: 'f16', output: 'f16', bias: true, epilogue: 'gelu' },
  { weight: 'q4', n: 50, bias: true, rank: 12 },
  { weight: 'q4', input: 'f16', bias: true, rank: 8, up: 'bf16', epilogue: 'gated' },
  { weight: 'q8', rank: 8, up: 'bf16' },
  { weight: 'bf16', k: 44, n: 12 },
  { weight: 'bf16', k: 96, n: 12, input: 'f16' },
  { weight: 'f32', k: 44, n: 13, epilogue: 'added' },
  { weight: 'f32', k: 100, n: 60, input: 'f16', output: 'f16' },
];
test.each(shapes)('agrees with double precision: %o', async (change) => {
  const shape = { ...plain, ...change };
  const operands = linearOperands(shape, 37);
  const y = await runLinear(backend, small, shape, operands, { first: 3 });
  const error = relativeRms(y, expectedLinear(shape, operands));
  expect(error).toBeLessThan(shape.output === 'f16' ? 5e-4 : 1e-5);
});

test('rows and chunks, in tiles of another size too, give the same bits', async () => {
  const shape: LinearShape = {
    ...plain,
    k: 160,
    input: 'f16',
    bias: true,
    rank: 4,
    epilogue: 'gelu',
  };
  const operands = linearOperands(shape, 45);
  const whole = await runLinear(backend, small, shape, operands);
  for (const [start, count] of [
    [0, 1],
    [7, 20],
    [44, 1],
  ] as const) {
    const part = await runLinear(backend, small, shape, operands, { start, count });
    expect(part).toEqual(whole.subarray(start * shape.n, (start + count) * shape.n));
  }
  expect(await runLinear(backend, { ...small, rows: 32 }, shape, operands)).toEqual(whole);
});

test('tiles of any geometry give the same bits', { tags: ['full'] }, async () => {
  const shape: LinearShape = { ...plain, k: 160, input: 'f16', rank: 4, epilogue: 'gelu' };
  // With 4, 2 and 1 vectors of a row to fill per thread, and with several rows.
  const others: readonly Partial<LinearVariant>[] = [
    { rows: 32 },
    { rows: 64 },
    { rows: 32, columns: 8, threadRows: 8 },
  ];
  for (const weight of ['q8', 'q4', 'f32'] as const) {
    // Of f32 the last step is not a whole one.
    const one = { ...shape, weight, k: weight === 'f32' ? 172 : shape.k };
    const operands = linearOperands(one, 45);
    const expected = await runLinear(backend, small, one, operands);
    for (const change of others) {
      expect(await runLinear(backend, { ...small, ...change }, one, operands)).toEqual(expected);
    }
  }
});

test('extreme inputs give finite results, and what f16 clamps is counted', async () => {
  const shape: LinearShape = {
    ...plain,
    input: 'f16',
    output: 'f16',
    counted: true,
    epilogue: 'gelu',
  };
  const operands = linearOperands(shape, 20);
  const { x } = operands;
  x.fill(65504, 0, shape.k);
  x.fill(0, shape.k, 2 * shape.k);
  for (let i = 2 * shape.k; i < 3 * shape.k; i++) x[i] = (x[i] ?? 0) * 1e4;
  for (let i = 3 * shape.k; i < x.length; i += 8) x[i] = (x[i] ?? 0) * 40;
  const overflows = { count: 0 };
  const y = await runLinear(backend, small, shape, operands, { overflows });
  const expected = expectedLinear(shape, operands);
  const clamped = expected.map((value) => Math.max(-65504, Math.min(65504, value)));
  expect(relativeRms(y, clamped)).toBeLessThan(5e-4);
  expect(y.subarray(shape.n, 2 * shape.n).every((value) => value === 0)).toBe(true);
  const over = (i: number) => [0, 1, 2, 3].some((lane) => (expected[i + lane] ?? 0) > 65504);
  const quads = expected.filter((_, i) => i % 4 === 0 && over(i)).length;
  expect(quads).toBeGreaterThan(0);
  expect(overflows.count).toBe(quads);
});

test('this device has variants', async () => {
  if (!backend.compute) throw new Error('the GPU runs no kernels');
  expect(linearVariants(backend.compute)[0]).toMatchObject({ rows: 128, columns: 128 });
});

/** @module-tag full */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createBackend, relativeRms } from '..';
import { type Backend, Scope } from '../backend';
import type { LinearVariant } from './choice';
import { type RowView, rowView } from './compute';
import { toHalf } from './half';
import { type FastLinearShape, fastLinearDispatch, fastLinearVariants } from './linear-dp4a';
import { quantiseDispatch } from './quantise';
import { expectedLinear, type LinearNumbers, linearOperands, packedWeight } from './testing/linear';

const small: LinearVariant = {
  rows: 16,
  columns: 16,
  threadRows: 4,
  threadColumns: 4,
  shared: 'f32',
};

const plain: FastLinearShape = {
  k: 96,
  n: 52,
  weight: 'q8',
  input: 'f16',
  output: 'f32',
  bias: true,
  rank: 0,
  epilogue: 'none',
};

/** The dot product as a device without the instruction computes it; a multiply-add that rounds once. */
const emulated = `
fn emulatedDot(a: u32, b: u32) -> i32 {
  let shifts = vec4<u32>(24u, 16u, 8u, 0u);
  let left = bitcast<vec4<i32>>(vec4<u32>(a) << shifts) >> vec4<u32>(24u);
  let right = bitcast<vec4<i32>>(vec4<u32>(b) << shifts) >> vec4<u32>(24u);
  return dot(left, right);
}
fn roundedOnce(sum: f32, scale: f32, offset: f32) -> f32 {
  return select((sum + offset / scale) * scale, offset, scale == 0.0);
}
`;

describe('fast linear', () => {
  let backend: Backend;
  beforeAll(async () => {
    backend = await createBackend('webgpu');
  });
  afterAll(() => backend.dispose());

  /** Rounds x, then multiplies; rows of every tensor start behind others. */
  async function run(
    variant: LinearVariant,
    shape: FastLinearShape,
    numbers: LinearNumbers,
    emulate = false,
  ) {
    if (!backend.compute) throw new Error('the GPU runs no kernels');
    const { k, n, rank } = shape;
    const { rows } = numbers;
    const scope = new Scope(backend);
    const first = 5;
    const behind = (values: Float32Array<ArrayBuffer>, width: number) => {
      const all = new Float32Array(first * width + values.length);
      all.set(values, first * width);
      return all;
    };
    const float = (values: Float32Array<ArrayBuffer>, width: number) =>
      scope.tensor(
        'float32',
        [values.length / width + first, width],
        'weights',
        behind(values, width),
      );
    const view = (tensor: ReturnType<typeof scope.tensor>, rowBytes: number): RowView =>
      rowView(tensor, first, rows, rowBytes);
    try {
      const source = scope.tensor(
        'float16',
        [rows + first, k],
        'activations',
        toHalf(behind(numbers.x, k)),
      );
      const bytes = scope.tensor('uint8', [rows + first, k], 'activations');
      const blocks = scope.tensor('float32', [rows + first, k / 32], 'activations');
      const [x, xScales] = [view(bytes, k), view(blocks, k / 8)];
      const y = float(numbers.y, n);
      const packed = packedWeight(shape, numbers);
      const plainFloat = (values: Float32Array<ArrayBuffer>) =>
        scope.tensor('float32', [values.length], 'weights', values);
      const job = fastLinearDispatch(variant, shape, {
        rows,
        x,
        xScales,
        y: view(y, n * 4),
        values: scope.tensor('uint8', [packed.length], 'weights', packed),
        scales: plainFloat(numbers.scales),
        ...(shape.bias && { bias: plainFloat(numbers.bias) }),
        ...(shape.epilogue === 'gated' && {
          gate: { operand: { tensor: plainFloat(numbers.gate) }, firstRow: 0 },
        }),
        ...(rank > 0 && { t: view(float(numbers.t, rank), rank * 4), up: plainFloat(numbers.up) }),
      });
      const { kernel } = job;
      const text =
        emulated +
        kernel.code
          .replaceAll('dot4I8Packed(', 'emulatedDot(')
          .replace('fma(bitcast<f32>(sum)', 'roundedOnce(bitcast<f32>(sum)');
      await backend.compute.dispatch([
        quantiseDispatch(k, 'f16', { rows, source: view(source, k * 2), x, xScales }),
        emulate
          ? { ...job, kernel: { ...kernel, key: `${kernel.key} emulated`, code: text } }
          : job,
      ]);
      const words = scope.float32([((rows + first) * k) / 4], 'activations');
      backend.copy(bytes, 0, words, 0, (rows + first) * k);
      const [result, levels, scales] = [
        await backend.read(y),
        await backend.read(words),
        await backend.read(blocks),
      ];
      return {
        y: result.slice(first * n),
        levels: new Int8Array(levels.buffer).slice(first * k),
        scales: scales.slice((first * k) / 32),
      };
    } finally {
      scope.dispose();
    }
  }

  /** With a row of zeros, a large row, and channels far larger than the others. */
  function extreme(shape: FastLinearShape): LinearNumbers {
    const numbers = linearOperands(shape, 37);
    const { x } = numbers;
    x.fill(0, 0, shape.k);
    for (let i = shape.k; i < 2 * shape.k; i++) x[i] = (x[i] ?? 0) * 1e4;
    for (let i = 2 * shape.k + 3; i < x.length; i += 24) x[i] = (x[i] ?? 0) * 40;
    return numbers;
  }

  test('rows are rounded to a 127th of the largest of each block', async () => {
    const numbers = extreme(plain);
    const { levels, scales } = await run(small, plain, numbers);
    expect(levels.subarray(0, plain.k).every((level) => level === 0)).toBe(true);
    const half = (i: number) => (scales[Math.floor(i / 32)] ?? 0) * 0.501;
    const x = numbers.x.map((value) => Math.max(-65504, Math.min(65504, value)));
    const wrong = [...x.keys()].filter((i) => {
      const back = (levels[i] ?? 0) * (scales[Math.floor(i / 32)] ?? 0);
      return Math.abs(back - (x[i] ?? 0)) > half(i) + Math.abs(x[i] ?? 0) * 2 ** -11;
    });
    expect(wrong).toEqual([]);
    const largest = levels.reduce((most, level) => Math.max(most, Math.abs(level)), 0);
    expect(largest).toBe(127);
  });

  test.each([{ weight: 'q8' }, { weight: 'q4', epilogue: 'gated', rank: 12 }] as const)(
    'has the bits of the emulated dot and an error below 2e-2: %o',
    async (change) => {
      const shape = { ...plain, ...change };
      const numbers = linearOperands(shape, 37);
      const { y } = await run(small, shape, numbers);
      expect(relativeRms(y, expectedLinear(shape, numbers))).toBeLessThan(2e-2);
      // Of its 64 threads 32 have a share of the weight's tile.
      const other = { ...small, rows: 64 };
      expect((await run(other, shape, numbers, true)).y).toEqual(y);
      expect((await run({ ...small, fused: true }, shape, numbers, true)).y).toEqual(y);
    },
  );

  test('extreme rows stay finite, and rows without outliers stay exact enough', async () => {
    const numbers = extreme(plain);
    const { y } = await run(small, plain, numbers);
    expect(y.every(Number.isFinite)).toBe(true);
    expect(relativeRms(y, expectedLinear(plain, numbers))).toBeLessThan(2e-2);
    expect(y.subarray(0, plain.n)).toEqual(numbers.bias);
  });

  test('this device has variants', () => {
    if (!backend.compute) throw new Error('the GPU runs no kernels');
    expect(fastLinearVariants(backend.compute).length).toBeGreaterThan(3);
    expect(fastLinearVariants({ ...backend.compute, features: new Set() })).toEqual([]);
  });
});

import { afterAll, expect, test } from 'vitest';
import { createBackend, relativeRms } from '..';
import { Scope } from '../backend';
import { layerNorm, rmsNorm, rotary } from '../reference';
import type { DeviceTensor } from '../tensor';
import { rowView } from './compute';
import { fromHalf, toHalf } from './half';
import type { Storage } from './kernel';
import { headRowsDispatch, layerNormDispatch, sumDispatch } from './pointwise';
import { storageBytes } from './text';

/** Numbers around 0 that are the same each time. */
function noise(count: number, seed: number): Float32Array<ArrayBuffer> {
  let state = seed;
  return Float32Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 31 - 1;
  });
}

/** Rows as they come from outliers: one is 10,000 times as large, one is 0, some channels are 40 times as large. */
function extreme(rows: number, width: number, seed: number): Float32Array<ArrayBuffer> {
  return noise(rows * width, seed).map((value, i) => {
    const [row, channel] = [Math.floor(i / width), i % width];
    if (row === 2) return 0;
    return value * (row === 1 ? 1e4 : 1) * (channel % 17 === 3 ? 40 : 1) + 0.5;
  });
}

const tolerances: Record<Storage, number> = { f32: 1e-5, f16: 5e-4 };

const backend = await createBackend('webgpu');
afterAll(() => backend.dispose());
if (!backend.compute) throw new Error('the GPU runs no kernels');
const { compute } = backend;
const scope = new Scope(backend);

const floats = (dims: readonly number[], data?: Float32Array<ArrayBuffer>) =>
  scope.float32(dims, 'activations', data);
const stored = (storage: Storage, dims: readonly number[], data?: Float32Array<ArrayBuffer>) =>
  storage === 'f32'
    ? floats(dims, data)
    : scope.tensor('float16', dims, 'activations', data && toHalf(data));
const read = (tensor: DeviceTensor) => backend.read(tensor as DeviceTensor<'float32'>);

test.each([
  [64, 'f16'],
  [132, 'f32'],
  [3072, 'f16'],
  [3072, 'f32'],
] as const)('layer norm of %i to %s', async (width, output) => {
  const [rows, all, first] = [5, 9, 3];
  const data = extreme(rows, width, 1);
  const [scale, shift] = [noise(width, 2), noise(width, 3)];
  const padded = new Float32Array(all * width);
  padded.set(data, first * width);
  const shape = { width, epsilon: 1e-6, output };
  const [x, y] = [floats([all, width], padded), stored(output, [all, width])];
  const yBytes = width * storageBytes(output);
  for (const one of [1, 0] as const) {
    await compute.dispatch([
      layerNormDispatch(shape, {
        x: rowView(x, first, rows, width * 4),
        y: rowView(y, 1, rows, yBytes),
        rows,
        scale: floats([width], scale),
        shift: floats([width], shift),
        one,
      }),
    ]);
    const expected = layerNorm(
      data,
      scale.map((value) => one + value),
      shift,
      1e-6,
    );
    const actual = await read(y);
    const part = actual.subarray(width, (rows + 1) * width);
    expect(relativeRms(part, expected)).toBeLessThan(tolerances[output]);
    // The rows around it are as they were.
    expect(actual.subarray(0, width).every((value) => value === 0)).toBe(true);
    expect(actual.subarray((rows + 1) * width).every((value) => value === 0)).toBe(true);
  }
});

test.each([
  [64, 32, 'f16'],
  [132, 44, 'f32'],
  [3072, 128, 'f16'],
] as const)(
  'RMS norm and rotary embedding of %i in heads of %i, %s',
  async (width, headSize, storage) => {
    // So many positions that every head starts at an aligned offset.
    const [rows, first, positions] = [4, 2, 16];
    const [heads, pairs] = [width / headSize, headSize / 2];
    const rounded = (values: Float32Array<ArrayBuffer>) =>
      storage === 'f16' ? fromHalf(toHalf(values)) : values;
    const data = rounded(extreme(rows, width, 4));
    const weight = noise(width, 5);
    const turns = noise(positions * pairs, 6).map((value) => value * 9);
    const [cos, sin] = [turns.map(Math.cos), turns.map(Math.sin)];
    const shape = {
      width,
      headSize,
      input: storage,
      norm: { epsilon: 1e-6 },
      rotary: true,
    } as const;
    const from = <T extends ArrayLike<number>>(table: T) =>
      Array.prototype.slice.call(table, first * pairs) as number[];
    const normed = rmsNorm(data, weight, 1e-6);
    const expected = rotary(normed, from(cos), from(sin), { heads, pairs });
    const common = {
      rows,
      weight: floats([width], weight),
      angles: {
        cos: floats([positions, pairs], cos),
        sin: floats([positions, pairs], sin),
        first,
      },
    };
    // In place, in rows 1 to 4.
    const padded = new Float32Array((rows + 1) * width);
    padded.set(data, width);
    const x = stored(storage, [rows + 1, width], padded);
    const view = rowView(x, 1, rows, width * storageBytes(storage));
    // By head into [heads, positions, headSize], in two ranges of heads.
    const separate = stored(storage, [heads, positions, headSize]);
    const ranges = [
      { first: 0, count: 1 },
      { first: 1, count: heads - 1 },
    ];
    const bytesOfHead = positions * headSize * storageBytes(storage);
    await compute.dispatch(
      ranges.map((range) =>
        headRowsDispatch(
          { ...shape, output: storage },
          {
            x: view,
            ...common,
            to: {
              y: { tensor: separate, byteOffset: range.first * bytesOfHead },
              firstRow: first,
              rowStride: headSize,
              headStride: positions * headSize,
              heads: range,
            },
          },
        ),
      ),
    );
    await compute.dispatch([headRowsDispatch({ ...shape, output: null }, { x: view, ...common })]);
    const inPlace = (await read(x)).subarray(width);
    expect(relativeRms(inPlace, expected)).toBeLessThan(tolerances[storage]);
    const byHead = await read(separate);
    const gathered = inPlace.map((_, i) => {
      const [row, c] = [Math.floor(i / width), i % width];
      const head = Math.floor(c / headSize);
      return byHead[(head * positions + first + row) * headSize + (c % headSize)] as number;
    });
    expect(gathered).toEqual(inPlace);
    const untouched = byHead.filter((_, i) => {
      const position = Math.floor(i / headSize) % positions;
      return position < first || position >= first + rows;
    });
    expect(untouched.every((value) => value === 0)).toBe(true);
  },
);

test('a copy to f16 clamps what f16 does not hold', async () => {
  const values = Float32Array.of(1, -1e6, 65504, 65519, 3e38, 2 ** -25, 0.1, -0);
  const x = floats([1, 8], values);
  const y = stored('f16', [1, 8]);
  const shape = {
    width: 8,
    headSize: 8,
    input: 'f32',
    output: 'f16',
    norm: null,
    rotary: false,
  } as const;
  const to = { y, firstRow: 0, rowStride: 8, headStride: 8 };
  await compute.dispatch([headRowsDispatch(shape, { x: rowView(x, 0, 1, 32), rows: 1, to })]);
  expect(relativeRms(await read(y), fromHalf(toHalf(values)))).toBeLessThan(5e-4);
  expect((await read(y)).subarray(1, 5)).toEqual(Float32Array.of(-65504, 65504, 65504, 65504));
});

test('sums of rows, with a repeated row and in place', async () => {
  const [rows, width] = [6, 132];
  const [a, b] = [noise(rows * width, 7), noise(rows * width, 8)];
  const [x, z, y] = [floats([rows, width], a), floats([rows, width], b), floats([rows, width])];
  const view = (tensor: DeviceTensor, first = 0) => rowView(tensor, first, 2, width * 4);
  const whole = (tensor: DeviceTensor) => rowView(tensor, 0, rows, width * 4);
  await compute.dispatch([
    sumDispatch(width, {
      a: whole(x),
      b: view(z, 4),
      y: whole(y),
      rows,
      factor: 1,
      repeated: true,
    }),
  ]);
  expect(await read(y)).toEqual(
    a.map((value, i) => value + (b[4 * width + (i % width)] as number)),
  );
  await compute.dispatch([
    sumDispatch(width, { a: view(x, 3), b: view(z, 3), rows: 2, factor: -1 }),
  ]);
  expect(await read(z)).toEqual(
    b.map((value, i) => {
      const inside = i >= 3 * width && i < 5 * width;
      return inside ? Math.fround((a[i] as number) - value) : value;
    }),
  );
});

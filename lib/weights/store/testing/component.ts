/** A component of a few small tensors, of every kind that the store knows: what its tests install. */
import { f32, safetensorsBytes, type TestTensor } from '../../testing/files';
import type { ComponentRecipe } from '../layout';

/** Numbers without a pattern, the same each time. */
export function numbers(count: number, seed = 1): Float32Array<ArrayBuffer> {
  const values = new Float32Array(count);
  let state = seed;
  for (let i = 0; i < count; i++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    values[i] = state / 2 ** 31 - 1;
  }
  return values;
}

/** Halves of any value but NaN and infinity. */
function halves(shape: readonly number[], seed: number): TestTensor {
  const count = shape.reduce((all, n) => all * n, 1);
  const words = Uint16Array.from(numbers(count, seed), (x) => Math.abs(x) * 0x7bff);
  return { dtype: 'F16', shape, data: new Uint8Array(words.buffer) };
}

export const tensors = {
  linear: { shape: [24, 64], data: numbers(24 * 64, 2) },
  unneeded: { shape: [2000], data: numbers(2000, 3) },
  kernel: halves([4, 3, 5], 4),
  table: halves([37, 32], 5),
  norm: f32([3], [1, -2, 3.5]),
  scaled: {
    dtype: 'F8_E4M3',
    shape: [4, 32],
    data: Uint8Array.from(numbers(128, 6), (x) => Math.abs(x) * 0x7e),
  },
  'x.weight': { dtype: 'F8_E4M3', shape: [2, 32], data: new Uint8Array(64).fill(0x38) },
  'x.scale_weight': f32([1], [0.25]),
} satisfies Record<string, TestTensor>;
/** Its only file. */
export const bytes = safetensorsBytes(tensors);

/** [4, 3, 5] → [3, 4, 5]. */
export function swapped(data: Float32Array): Float32Array {
  const out = new Float32Array(60);
  for (let i = 0; i < 60; i++) {
    const [a, b, c] = [Math.floor(i / 15), Math.floor(i / 5) % 3, i % 5];
    out[(b * 4 + a) * 5 + c] = data[i] ?? 0;
  }
  return out;
}

export const recipe: ComponentRecipe = {
  component: 'transformer',
  tensors: [
    { name: 'norm', source: 'norm', shape: [3], form: 'f32', pack: 'a.bin' },
    { name: 'linear', source: 'linear', shape: [24, 64], form: 'int8', pack: 'a.bin' },
    { name: 'scaled', source: 'scaled', shape: [4, 32], form: 'f32', pack: 'b.bin' },
    { name: 'table', source: 'table', shape: [37, 32], form: 'compact', pack: 'b.bin' },
    {
      name: 'kernel#',
      source: 'kernel',
      shape: [4, 3, 5],
      form: 'compact',
      pack: 'b.bin',
      reorder: { shape: [3, 4, 5], apply: swapped },
    },
    { name: 'x.weight', source: 'x.weight', shape: [2, 32], form: 'int4', pack: 'a.bin' },
  ],
};

import { expect, test } from 'vitest';
import { FrameScaler } from './frame-scaler';
import { I420Scaler } from './i420-scaler';
import { catmullRom, type Kernel, lanczos3 } from './resample';
import { i420Of } from './testing/i420';

/** Colours with edges, and some beyond what a byte holds. */
function frameOf(width: number, height: number, seed = 1): Float32Array {
  return Float32Array.from({ length: 3 * width * height }, (_, i) => {
    const edge = Math.sin(i * 0.37 * seed) > 0.8 ? 0.6 : 0;
    return Math.sin(i * 0.011 * seed) + edge;
  });
}

type Size = readonly [width: number, height: number];
const shapes: readonly (readonly [name: string, source: Size, target: Size, kernel: Kernel])[] = [
  ['nearly the same size', [80, 44], [80, 46], catmullRom],
  ['the same size', [32, 18], [32, 18], catmullRom],
  ['portrait', [44, 80], [46, 80], catmullRom],
  ['twice the size', [20, 11], [40, 22], lanczos3],
  ['smaller', [100, 60], [32, 18], catmullRom],
  ['a width that no vector divides', [13, 7], [18, 10], catmullRom],
  ['the least width', [3, 5], [4, 6], lanczos3],
];

test.each(shapes)('%s: the planes are those of the definition', (_, source, target, kernel) => {
  const [from, to] = [source, target].map(([width, height]) => ({ width, height }));
  if (!from || !to) throw new TypeError('no size');
  const scaler = new I420Scaler(from, to, kernel);
  const plain = new FrameScaler(from, to, kernel);
  for (const seed of [1, 2]) {
    const frame = frameOf(...source, seed);
    const wanted = i420Of(plain.scale(frame), ...target);
    const planes = scaler.scale(frame);
    expect(planes).toHaveLength(wanted.length);
    const off = [...planes].map((byte, i) => Math.abs(byte - (wanted[i] ?? 0)));
    expect(Math.max(...off)).toBeLessThanOrEqual(1);
    expect(off.filter((difference) => difference > 0).length).toBeLessThanOrEqual(
      Math.max(2, wanted.length / 1000),
    );
  }
});

test('ties go to even, NaN is black, and what is out of range is cut', () => {
  const size = { width: 4, height: 2 };
  const luma = (value: number) =>
    new I420Scaler(size, size).scale(new Float32Array(24).fill(value))[0];
  expect([0, 1.5, -7, Number.NaN].map(luma)).toEqual([126, 235, 16, 16]);
});

test('sizes that I420 cannot have, and a frame of another size, are a TypeError', () => {
  const size = { width: 8, height: 8 };
  for (const target of [
    { width: 7, height: 8 },
    { width: 8, height: 7 },
    { width: 2, height: 2 },
  ]) {
    expect(() => new I420Scaler(size, target)).toThrow(TypeError);
  }
  expect(() => new I420Scaler(size, size).scale(new Float32Array(5))).toThrow(TypeError);
});

import { expect, test } from 'vitest';
import { rgbaToI420 } from './testing/i420';
import { i420Bytes, yuvToRgba } from './yuv';

/** Y, U, V of a 2×2 frame of one colour. */
function yuvOf(...[r, g, b]: [number, number, number]): number[] {
  const planes = new Uint8Array(i420Bytes(2, 2));
  rgbaToI420(Uint8ClampedArray.from([0, 1, 2, 3].flatMap(() => [r, g, b, 255])), planes, 2, 2);
  const [y0, y1, y2, y3, u, v] = [...planes] as [number, number, number, number, number, number];
  expect([y1, y2, y3]).toEqual([y0, y0, y0]);
  return [y0, u, v];
}

test('the corners of the cube have the values of BT.709 in limited range', () => {
  expect(yuvOf(0, 0, 0)).toEqual([16, 128, 128]);
  expect(yuvOf(255, 255, 255)).toEqual([235, 128, 128]);
  expect(yuvOf(255, 0, 0)).toEqual([63, 102, 240]);
  expect(yuvOf(0, 255, 0)).toEqual([173, 42, 26]);
  expect(yuvOf(0, 0, 255)).toEqual([32, 240, 118]);
});

test('grey has no colour', () => {
  for (let level = 0; level < 256; level++) {
    expect(yuvOf(level, level, level).slice(1)).toEqual([128, 128]);
  }
});

test('any colour is within rounding of the definition', () => {
  for (let i = 0; i < 4096; i++) {
    const [r, g, b] = [(i & 15) * 17, ((i >> 4) & 15) * 17, (i >> 8) * 17] as const;
    const luma = (0.2126 * r + 0.7152 * g + 0.0722 * b) / 255;
    const [y, u, v] = yuvOf(r, g, b) as [number, number, number];
    expect(Math.abs(y - (16 + 219 * luma))).toBeLessThan(0.51);
    expect(Math.abs(u - (128 + (224 * (b / 255 - luma)) / 1.8556))).toBeLessThan(0.51);
    expect(Math.abs(v - (128 + (224 * (r / 255 - luma)) / 1.5748))).toBeLessThan(0.51);
  }
});

test('every pixel goes to its place, and colour is the mean of four', () => {
  const rgba = new Uint8ClampedArray(4 * 2 * 4);
  for (let i = 0; i < 8; i++) rgba.fill(i * 30, 4 * i, 4 * i + 3);
  rgba.set([255, 0, 0], 0); // one red pixel of the left four
  const planes = new Uint8Array(i420Bytes(4, 2));
  rgbaToI420(rgba, planes, 4, 2);
  expect([...planes.subarray(0, 8)]).toEqual([63, 42, 68, 93, 119, 145, 171, 196]);
  expect([...planes.subarray(8)]).toEqual([122, 128, 156, 128]);
});

test('planes become pixels again, also where U and V alternate', () => {
  const [width, height] = [4, 2];
  const colors = [
    [50, 60, 210],
    [200, 40, 40],
  ] as const;
  const rgba = Uint8ClampedArray.from(
    [0, 0, 1, 1, 0, 0, 1, 1].flatMap((i) => [...(colors[i] ?? []), 255]),
  );
  const i420 = new Uint8Array(i420Bytes(width, height));
  rgbaToI420(rgba, i420, width, height);
  const y = { offset: 0, stride: 4 };
  const [u, v] = [8, 10].map((offset) => ({ offset, stride: 2 })) as [typeof y, typeof y];
  const layouts = [
    [i420, { y, u, v, step: 1 }],
    [
      Uint8Array.from([...i420.slice(0, 8), ...[8, 10, 9, 11].map((at) => i420[at] ?? 0)]),
      { y, u: { offset: 8, stride: 4 }, v: { offset: 9, stride: 4 }, step: 2 },
    ],
  ] as const;
  for (const [bytes, layout] of layouts) {
    const back = yuvToRgba(bytes, layout, width, height);
    expect(Math.max(...back.map((value, i) => Math.abs(value - (rgba[i] ?? 0))))).toBeLessThan(3);
  }
});

import { expect, test } from 'vitest';
import { blurDeviation, centred, type Framing, placeImage } from '../contract';
import { coverCrop, frameImage } from './frame-image';
import type { Pixels } from './image';

/** Every pixel differs from its neighbours and says where it is. */
function image(width: number, height: number): Pixels {
  const data = Uint8ClampedArray.from({ length: 4 * width * height }, (_, i) => {
    const x = Math.floor(i / 4) % width;
    const y = Math.floor(i / 4 / width);
    return [x, y, (x * 7 + y * 13) % 256, 255][i % 4] as number;
  });
  return { width, height, data };
}

/** The bytes of a pixel of planar RGB in [−1, 1]. */
function bytesAt(planes: Float32Array, width: number, x: number, y: number): number[] {
  const plane = planes.length / 3;
  return [0, 1, 2].map((c) => ((planes[c * plane + y * width + x] as number) + 1) * 127.5);
}

/** Compares each pixel of a frame of 40×30 with what `expected` says, which names a pixel or a colour. */
function expectPixels(
  source: Pixels,
  framing: Framing,
  expected: (x: number, y: number) => readonly [number, number] | readonly number[],
): void {
  const framed = frameImage(source, framing, { width: 40, height: 30 });
  expect(framed.length).toBe(3 * 40 * 30);
  let worst = 0;
  for (let y = 0; y < 30; y++) {
    for (let x = 0; x < 40; x++) {
      const wanted = expected(x, y);
      const at = 4 * ((wanted[1] as number) * source.width + (wanted[0] as number));
      const bytes = wanted.length === 2 ? source.data.subarray(at, at + 3) : wanted;
      const actual = bytesAt(framed, 40, x, y);
      for (let c = 0; c < 3; c++) {
        worst = Math.max(worst, Math.abs((actual[c] as number) - (bytes[c] as number)));
      }
    }
  }
  expect(worst).toBeLessThan(5e-4);
}

test('a zoom of 1 in the centre is the centre crop, bit by bit', () => {
  for (const source of [image(97, 31), image(50, 80), image(64, 32)]) {
    const expected = coverCrop(source, 64, 32);
    const frame = { width: 64, height: 32 };
    expect(frameImage(source, undefined, frame)).toEqual(expected);
    expect(frameImage(source, centred, frame, { width: 1280, height: 720 })).toEqual(expected);
  }
});

test('zoom and position choose the pixels that fill the frame', () => {
  // 100×60 covers 40×30 when it is halved, so that it has its own size at a zoom of 2.
  const source = image(100, 60);
  expectPixels(source, { ...centred, zoom: 2 }, (x, y) => [x + 30, y + 15]);
  expectPixels(source, { ...centred, zoom: 2, x: 0, y: 1 }, (x, y) => [x, y + 30]);
  expectPixels(source, { ...centred, zoom: 2, x: 1, y: 0.1 }, (x, y) => [x + 60, y + 3]);
});

test('a zoom of 0 shows the whole image, with bars of a colour, at the chosen side', () => {
  const narrow = image(20, 30);
  const bars = { ...centred, zoom: 0, background: '#102Aff' };
  const colour = [0x10, 0x2a, 0xff];
  const inside = (at: number, from: number, length: number) => at >= from && at < from + length;
  expectPixels(narrow, bars, (x, y) => (inside(x, 10, 20) ? [x - 10, y] : colour));
  expectPixels(narrow, { ...bars, x: 0 }, (x, y) => (x < 20 ? [x, y] : colour));
  expectPixels(narrow, { ...bars, x: 1 }, (x, y) => (x >= 20 ? [x - 20, y] : colour));
  const low = image(40, 10);
  expectPixels(low, { ...bars, y: 0.25 }, (x, y) => (inside(y, 5, 10) ? [x, y - 5] : colour));
});

test('the whole image lies in the part of the frame that the video shows', () => {
  // Of 64×32, a video of 16:9 shows 56.9 columns.
  const sizes = [
    { width: 64, height: 32 },
    { width: 1280, height: 720 },
  ] as const;
  const whole = placeImage({ width: 1280, height: 720 }, { ...centred, zoom: 0 }, ...sizes);
  expect(whole.x).toMatchObject({ resized: 57, length: 57, start: 3 });
  expect(whole.y).toMatchObject({ resized: 32, length: 32, start: 0 });
  // Half-way to filling the frame, whose 64 columns it has then.
  const between = placeImage({ width: 1280, height: 720 }, { ...centred, zoom: 0.5 }, ...sizes);
  expect([between.x.resized, between.y.resized]).toEqual([60, 34]);
});

test('blurred bars continue the image: its colours, as soft as the editor shows them', () => {
  const [width, height] = [240, 120];
  const grey = { width: 30, height: 90, data: new Uint8ClampedArray(4 * 30 * 90).fill(200) };
  const blur = { ...centred, zoom: 0 };
  const errors = frameImage(grey, blur, { width, height }).map(
    (value) => value - (200 / 127.5 - 1),
  );
  expect(errors.every((error) => Math.abs(error) < 5e-5)).toBe(true);

  // A bright lower half: down a bar, brightness rises over the height of the blur.
  const halves = { width: 80, height: 120, data: new Uint8ClampedArray(4 * 80 * 120).fill(255) };
  halves.data.fill(0, 0, halves.data.length / 2);
  const framed = frameImage(halves, blur, { width, height });
  const column = Array.from({ length: height }, (_, y) => bytesAt(framed, width, 20, y)[0] ?? 0);
  const slopes = column.slice(1).map((value, y) => Math.max(0, value - (column[y] ?? 0)));
  const sum = slopes.reduce((a, b) => a + b, 0);
  const mean = slopes.reduce((a, slope, y) => a + slope * (y + 1), 0) / sum;
  const variance = slopes.reduce((a, slope, y) => a + slope * (y + 1 - mean) ** 2, 0) / sum;
  expect(Math.abs(mean - height / 2)).toBeLessThan(1);
  expect(Math.sqrt(variance) / (blurDeviation * width)).toBeGreaterThan(0.85);
  expect(Math.sqrt(variance) / (blurDeviation * width)).toBeLessThan(1.15);
});

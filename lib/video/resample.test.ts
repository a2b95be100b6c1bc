import { describe, expect, test } from 'vitest';
import { centred, placeImage } from '../contract';
import { coverCrop } from './frame-image';
import { FrameScaler } from './frame-scaler';

/** Lanczos-3 and Keys' cubic (a = −½), written down from their definitions. */
const kernels = {
  lanczos: (x: number) => {
    if (x === 0) return 1;
    if (Math.abs(x) >= 3) return 0;
    return (3 * Math.sin(Math.PI * x) * Math.sin((Math.PI * x) / 3)) / (Math.PI * x) ** 2;
  },
  cubic: (x: number) => {
    const t = Math.abs(x);
    if (t < 1) return 1.5 * t ** 3 - 2.5 * t ** 2 + 1;
    if (t < 2) return -0.5 * t ** 3 + 2.5 * t ** 2 - 4 * t + 2;
    return 0;
  },
};

/**
 * The resampler in double precision, the slow way: every output pixel is one sum over all source
 * pixels, by the product of the two kernels, divided by the sum of the weights.
 */
function reference(
  at: (x: number, y: number) => number,
  source: readonly [number, number],
  target: readonly [number, number],
  kernel: (x: number) => number,
): number[] {
  const scale = Math.max(target[0] / source[0], target[1] / source[1]);
  const resized = source.map((size) => Math.round(size * scale)) as [number, number];
  const offset = resized.map((size, i) => Math.floor((size - (target[i] as number)) / 2));
  /** The source positions with a weight, and these, by position in the target. */
  const weights = ([0, 1] as const).map((axis) =>
    Array.from({ length: target[axis] }, (_, out) => {
      const ratio = source[axis] / resized[axis];
      const center = (out + (offset[axis] as number) + 0.5) * ratio;
      const all = Array.from(
        { length: source[axis] },
        (_, k) => [k, kernel((k + 0.5 - center) / Math.max(1, ratio))] as const,
      );
      return all.filter(([, weight]) => weight !== 0);
    }),
  );
  const result: number[] = [];
  for (let oy = 0; oy < target[1]; oy++) {
    for (let ox = 0; ox < target[0]; ox++) {
      let sum = 0;
      let total = 0;
      for (const [y, vertical] of weights[1]?.[oy] ?? []) {
        for (const [x, horizontal] of weights[0]?.[ox] ?? []) {
          sum += horizontal * vertical * at(x, y);
          total += horizontal * vertical;
        }
      }
      result.push(sum / total);
    }
  }
  return result;
}

/** Reproducible noise in [0, 1). */
function noise(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

function noisePixels(width: number, height: number, seed = 1) {
  const next = noise(seed);
  const data = Uint8ClampedArray.from({ length: width * height * 4 }, (_, i) =>
    i % 4 === 3 ? 255 : Math.floor(next() * 256),
  );
  return { width, height, data };
}

function noiseFrame(width: number, height: number, seed = 1): Float32Array {
  const next = noise(seed);
  return Float32Array.from({ length: 3 * width * height }, () => next() * 2 - 1);
}

const shapes: [string, readonly [number, number], readonly [number, number]][] = [
  ['shrinking, same ratio', [48, 32], [24, 16]],
  ['shrinking strongly, wide', [97, 31], [16, 9]],
  ['shrinking strongly, tall', [23, 90], [16, 9]],
  ['shrinking a little', [33, 20], [32, 18]],
  ['enlarging', [13, 7], [32, 18]],
  ['enlarging as 1280×704 to 1280×720', [80, 44], [80, 45]],
  ['enlarging a single pixel', [1, 1], [8, 6]],
  ['enlarging two pixels', [2, 1], [8, 6]],
  ['cropping only', [40, 18], [32, 18]],
];

describe.each(shapes)('%s', (_name, source, target) => {
  test('coverCrop agrees with the definition in double precision', () => {
    const pixels = noisePixels(...source);
    const actual = coverCrop(pixels, ...target);
    const plane = target[0] * target[1];
    for (let c = 0; c < 3; c++) {
      const at = (x: number, y: number) => pixels.data[(y * source[0] + x) * 4 + c] as number;
      const expected = reference(at, source, target, kernels.lanczos);
      const errors = expected.map((wanted, i) => {
        const value = Math.min(1, Math.max(-1, wanted / 127.5 - 1));
        return Math.abs((actual[c * plane + i] as number) - value);
      });
      expect(Math.max(...errors)).toBeLessThan(3e-6);
    }
  });

  test('FrameScaler agrees with the definition in double precision', () => {
    const frame = noiseFrame(...source);
    const scaler = new FrameScaler(
      { width: source[0], height: source[1] },
      { width: target[0], height: target[1] },
    );
    const actual = scaler.scale(frame);
    const plane = source[0] * source[1];
    for (let c = 0; c < 3; c++) {
      const at = (x: number, y: number) => frame[c * plane + y * source[0] + x] as number;
      const expected = reference(at, source, target, kernels.cubic);
      const errors = expected.map((value, i) => {
        const byte = Math.min(255, Math.max(0, (value + 1) * 127.5));
        return Math.abs((actual[4 * i + c] as number) - byte);
      });
      expect(Math.max(...errors)).toBeLessThan(0.5001);
    }
    expect(actual.filter((_, i) => i % 4 === 3).every((alpha) => alpha === 255)).toBe(true);
  });
});

test('an image of the right size is taken as it is, bit by bit', () => {
  const pixels = noisePixels(32, 18);
  const actual = coverCrop(pixels, 32, 18);
  const expected = new Float32Array(3 * 32 * 18);
  for (let i = 0; i < 32 * 18; i++) {
    for (let c = 0; c < 3; c++) {
      expected[c * 32 * 18 + i] = (pixels.data[4 * i + c] as number) / 127.5 - 1;
    }
  }
  expect(actual).toEqual(expected);
});

test('a frame of the right size keeps every value and rounds to the nearest, ties to even', () => {
  const bytes = Array.from({ length: 256 }, (_, i) => i);
  const frame = Float32Array.from([...bytes, ...bytes, ...bytes], (byte) => byte / 127.5 - 1);
  const scaler = new FrameScaler({ width: 16, height: 16 }, { width: 16, height: 16 });
  const pixels = scaler.scale(frame);
  for (const byte of bytes)
    expect([...pixels.subarray(4 * byte, 4 * byte + 3)]).toEqual([byte, byte, byte]);

  const ties = new FrameScaler({ width: 1, height: 1 }, { width: 1, height: 1 });
  // 0 lies half-way between 127 and 128; what is out of range is cut.
  expect([...ties.scale(Float32Array.from([0, 1.5, -7]))]).toEqual([128, 255, 0, 255]);
  expect([...ties.scale(Float32Array.from([Number.NaN, 1, -1]))]).toEqual([0, 255, 0, 255]);
});

test('a flat image stays flat, and overshoot at edges is cut off', () => {
  const flat = { width: 50, height: 40, data: new Uint8ClampedArray(50 * 40 * 4).fill(200) };
  for (const value of coverCrop(flat, 32, 18)) expect(value).toBeCloseTo(200 / 127.5 - 1, 5);
  const edge = { width: 50, height: 40, data: new Uint8ClampedArray(50 * 40 * 4).fill(255) };
  for (let i = 0; i < edge.data.length / 2; i++) edge.data[i] = 0;
  for (const value of coverCrop(edge, 32, 18)) expect(Math.abs(value)).toBeLessThanOrEqual(1);
});

test('the crop is in the middle', () => {
  const placed = (...[width, height, toWidth, toHeight]: [number, number, number, number]) =>
    placeImage({ width, height }, centred, { width: toWidth, height: toHeight });
  expect(placed(1280, 704, 1280, 720)).toEqual({
    x: { source: 1280, resized: 1309, offset: 14, length: 1280, start: 0 },
    y: { source: 704, resized: 720, offset: 0, length: 720, start: 0 },
  });
  expect(placed(4000, 3000, 1280, 704)).toEqual({
    x: { source: 4000, resized: 1280, offset: 0, length: 1280, start: 0 },
    y: { source: 3000, resized: 960, offset: 128, length: 704, start: 0 },
  });
  // Mirrored in, mirrored out: nothing is shifted to one side.
  const pixels = noisePixels(60, 20);
  const mirrored = { ...pixels, data: new Uint8ClampedArray(pixels.data.length).fill(255) };
  for (let y = 0; y < 20; y++) {
    for (let x = 0; x < 60; x++) {
      const at = (y * 60 + x) * 4;
      mirrored.data.set(pixels.data.subarray(at, at + 4), (y * 60 + 59 - x) * 4);
    }
  }
  const [one, other] = [coverCrop(pixels, 20, 16), coverCrop(mirrored, 20, 16)];
  for (let i = 0; i < one.length; i++) {
    const row = Math.floor(i / 20) * 20;
    expect(other[row + 19 - (i - row)]).toBeCloseTo(one[i] as number, 5);
  }
});

test('a scaler is not changed by what it scaled before', () => {
  const sizes = [
    { width: 16, height: 10 },
    { width: 32, height: 18 },
  ] as const;
  const scaler = new FrameScaler(...sizes);
  scaler.scale(noiseFrame(16, 10, 1));
  const second = scaler.scale(noiseFrame(16, 10, 2));
  expect(second).toEqual(new FrameScaler(...sizes).scale(noiseFrame(16, 10, 2)));
});

test('sizes that cannot be are a TypeError', () => {
  const size = { width: 5, height: 5 };
  expect(() => placeImage({ width: 0, height: 5 }, centred, size)).toThrow(TypeError);
  expect(() => placeImage(size, centred, { width: 5, height: 2.5 })).toThrow(TypeError);
  const scaler = new FrameScaler({ width: 16, height: 10 }, { width: 32, height: 18 });
  expect(() => scaler.scale(new Float32Array(5))).toThrow(TypeError);
});

import { afterAll, expect, test } from 'vitest';
import { createBackend, relativeRms } from '..';
import { type DeviceTensor, Scope } from '../backend';
import { channelNormDispatches } from './channel-norm';
import type { Compute } from './compute';
import type { ConvolutionShape, ConvolutionVariant } from './convolution';
import { type ConvolutionRun, convolutionDispatches } from './convolution-run';
import { packedDims, packedRows, packJob } from './convolution-weights';
import { depthwiseDispatch } from './depthwise';
import { fromHalf, toHalf } from './half';
import type { Storage } from './kernel';

/** Geometry is no part of the results; a small tile compiles fast. */
const small: ConvolutionVariant = { pixels: 16, filters: 16, threadPixels: 1, threadFilters: 4 };

const [height, width] = [11, 7];

/** Numbers in (−1, 1), the same for the same seed. */
function numbers(count: number, seed: number, storage: Storage = 'f32'): Float32Array<ArrayBuffer> {
  let state = seed * 7919 + 1;
  const values = Float32Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 31 - 1;
  });
  return storage === 'f32' ? values : fromHalf(toHalf(values));
}

const at = (values: ArrayLike<number>, index: number) => values[index] ?? Number.NaN;

interface Case {
  readonly inputs: number;
  readonly filters: number;
  readonly storage: Storage;
  readonly output: Storage;
  readonly residual: ConvolutionShape['residual'];
  /** Frames that there are, of three. */
  readonly frames: number;
  readonly scale: 1 | 2;
  readonly sideInputs: number;
  readonly activation: ConvolutionShape['activation'];
  readonly shuffled: boolean;
}

const usual: Case = {
  inputs: 16,
  filters: 12,
  storage: 'f32',
  output: 'f32',
  residual: 'none',
  frames: 3,
  scale: 1,
  sideInputs: 0,
  activation: null,
  shuffled: false,
};
const picks = [0, 0, 1, 1];

const backend = await createBackend('webgpu');
afterAll(() => backend.dispose());
if (!backend.compute) throw new Error('the GPU runs no kernels');
const { compute } = backend;

/** A tensor with values in a storage. */
function upload(scope: Scope, values: Float32Array<ArrayBuffer>, storage: Storage) {
  return storage === 'f32'
    ? scope.float32([values.length], 'activations', values)
    : scope.tensor('float16', [values.length], 'activations', toHalf(values));
}

async function computed(
  scope: Scope,
  given: Case,
  variant = small,
  device: Pick<Compute, 'limits'> = compute,
) {
  const { inputs, filters, storage, output, residual, frames, scale, sideInputs } = given;
  const { activation, shuffled } = given;
  const side = scale === 1 || shuffled ? 3 : 2;
  const taps = side * side;
  const blocks = scale === 1 ? 3 : 4;
  const pixels = height * width;
  const images = Array.from({ length: frames }, (_, age) =>
    numbers(pixels * inputs, 10 + age, storage),
  );
  const weight = numbers(blocks * filters * inputs * taps, 2, storage);
  const bias = numbers(Math.ceil(filters / 4) * (shuffled ? 16 : 4), 3);
  const slope = numbers(Math.ceil(filters / 4) * 4, 6);
  const shortcut = numbers(sideInputs * filters, 4, storage);
  const sideValues = numbers(pixels * (sideInputs || filters), 5, storage);
  const order = {
    blocks,
    filters,
    channels: inputs,
    taps,
    strides: { block: filters * inputs * taps, filter: inputs * taps, channel: taps, tap: 1 },
  };
  const shortcutOrder = {
    blocks: 1,
    filters,
    channels: sideInputs,
    taps: 1,
    strides: { block: 0, filter: 1, channel: filters, tap: 0 },
  };
  const [rows, linear] = [packedRows(order), residual === 'linear'];
  const dims = packedDims(rows + (linear ? packedRows(shortcutOrder) : 0), filters);
  const dtype = { f32: 'float32', f16: 'float16' } as const;
  const weights = scope.tensor(dtype[storage], dims, 'weights');
  const y =
    residual === 'stored'
      ? upload(scope, sideValues, output)
      : scope.tensor(dtype[output], [pixels * scale ** 2 * filters], 'activations');
  const shape: ConvolutionShape = {
    frames: scale === 1 ? 3 : 1,
    input: storage,
    weight: storage,
    output,
    residual,
    side: storage,
    bias: true,
    activation,
    shuffled,
    wholeVectors: filters % 4 === 0,
  };
  const run: ConvolutionRun = {
    x: images.map((image) => upload(scope, image, storage)),
    weights,
    bias: upload(scope, bias, 'f32'),
    slope: activation === 'prelu' ? upload(scope, slope, 'f32') : undefined,
    side: ['none', 'stored'].includes(residual) ? undefined : upload(scope, sideValues, storage),
    y,
    height,
    width,
    inputs,
    filters,
    kernel: [side, side],
    pads: [1, 1],
    outputHeight: height,
    outputWidth: width,
    scale,
    sideInputs: sideInputs || filters,
    picks,
  };
  await compute.dispatch([
    packJob(upload(scope, weight, 'f32'), order, weights),
    ...(linear ? [packJob(upload(scope, shortcut, 'f32'), shortcutOrder, weights, rows)] : []),
    ...convolutionDispatches(device, variant, shape, run),
  ]);

  const expected = new Float64Array(pixels * scale ** 2 * filters);
  for (let pixel = 0; pixel < pixels * scale ** 2; pixel++) {
    const [row, column] = [Math.floor(pixel / (width * scale)), pixel % (width * scale)];
    const [py, px] = [row % scale, column % scale];
    const [top, left] = [Math.floor(row / scale), Math.floor(column / scale)];
    for (let filter = 0; filter < filters; filter++) {
      const shift = shuffled ? 0 : 1;
      let sum = at(bias, shuffled ? (2 * py + px) * filters + filter : filter);
      for (const [age, image] of images.entries()) {
        const block = scale === 1 ? age : 2 * py + px;
        for (let tap = 0; tap < taps; tap++) {
          const iy = top + Math.floor(tap / side) - 1 + shift * py;
          const ix = left + (tap % side) - 1 + shift * px;
          if (iy < 0 || iy >= height || ix < 0 || ix >= width) continue;
          for (let c = 0; c < inputs; c++) {
            const value = at(image, (iy * width + ix) * inputs + c);
            sum += value * at(weight, ((block * filters + filter) * inputs + c) * taps + tap);
          }
        }
      }
      const from = (top * width + left) * (sideInputs || filters);
      if (residual === 'same' || residual === 'stored') sum += at(sideValues, from + filter);
      if (residual === 'repeated') {
        sum += at(sideValues, from + (filter * sideInputs) / filters + at(picks, 2 * py + px));
      }
      for (let c = 0; linear && c < sideInputs; c++) {
        sum += at(sideValues, from + c) * at(shortcut, c * filters + filter);
      }
      const below = activation === 'prelu' ? at(slope, filter) * sum : 0;
      expected[pixel * filters + filter] = activation && sum < 0 ? below : sum;
    }
  }
  const values = await backend.read(y as DeviceTensor<'float32'>);
  return { values, expected };
}

async function errorOf(given: Case) {
  const scope = new Scope(backend);
  const { values, expected } = await computed(scope, given);
  scope.dispose();
  return relativeRms(values, expected);
}

test.each([1, 2, 3])('%s frames of three, 16→12 with PReLU, an image of 11×7', async (frames) => {
  expect(await errorOf({ ...usual, frames, activation: 'prelu' })).toBeLessThan(1e-6);
});

test('48→130 and 12→130: filters that are no multiple of 4, channels of none of 16', {
  tags: ['full'],
}, async () => {
  expect(await errorOf({ ...usual, inputs: 48, filters: 130 })).toBeLessThan(1e-6);
  expect(await errorOf({ ...usual, inputs: 12, filters: 130, frames: 2 })).toBeLessThan(1e-6);
});

const half = { ...usual, storage: 'f16', output: 'f16' } as const;

test('f16: 48→132, a residual of another image, and the same bits where the result takes its place', async () => {
  const scope = new Scope(backend);
  const given = { ...half, inputs: 48, filters: 132 } as const;
  const { values, expected } = await computed(scope, { ...given, residual: 'same' });
  expect(relativeRms(values, expected)).toBeLessThan(3e-4);
  const stored = await computed(scope, { ...given, residual: 'stored' });
  expect(stored.values).toEqual(values);
  scope.dispose();
});

test('f16: a shortcut through a 1×1 convolution, also with a short past', {
  tags: ['full'],
}, async () => {
  for (const frames of [1, 3]) {
    const given = { ...half, residual: 'linear', inputs: 12, sideInputs: 24, frames } as const;
    expect(await errorOf(given)).toBeLessThan(3e-4);
  }
});

test('upsampling in four phases, with the channels of the small image', async () => {
  const given = { ...half, residual: 'repeated', scale: 2, sideInputs: 24, frames: 1 } as const;
  expect(await errorOf(given)).toBeLessThan(3e-4);
});

test('bands for small bindings and other tiles do not change a bit', {
  tags: ['full'],
}, async () => {
  const scope = new Scope(backend);
  const given = {
    ...half,
    residual: 'repeated',
    scale: 2,
    sideInputs: 32,
    frames: 1,
    inputs: 128,
    filters: 16,
  } as const;
  const whole = await computed(scope, given);
  const limits = { ...compute.limits, bindingBytes: 12_000 };
  const bands = await computed(scope, given, { ...small, pixels: 32, threadPixels: 2 }, { limits });
  expect(bands.values).toEqual(whole.values);
  scope.dispose();
});

test('four filters of the same pixels, with a bias each and ReLU, become four pixels', async () => {
  const given = {
    ...half,
    scale: 2,
    shuffled: true,
    activation: 'relu',
    frames: 1,
    inputs: 48,
  } as const;
  expect(await errorOf(given)).toBeLessThan(3e-4);
});

test.each([1, 2])('a filter for each channel of %s frames', async (frames) => {
  const scope = new Scope(backend);
  const [channels, kernel, storage] = [12, 7, 'f16'] as const;
  const pixels = height * width;
  const images = Array.from({ length: frames }, (_, age) =>
    numbers(pixels * channels, 10 + age, storage),
  );
  const weights = numbers(kernel ** 2 * 2 * channels, 2);
  const y = scope.float32([pixels * 2 * channels], 'activations');
  const run = {
    x: images.map((image) => upload(scope, image, storage)),
    weights: upload(scope, weights, 'f32'),
    y,
    height,
    width,
    channels,
    kernel,
    input: storage,
    output: 'f32',
  } as const;
  await compute.dispatch([depthwiseDispatch(run)]);
  const expected = new Float64Array(pixels * 2 * channels);
  for (let i = 0; i < expected.length; i++) {
    const [pixel, number] = [Math.floor(i / (2 * channels)), i % (2 * channels)];
    const image = images[Math.floor(number / channels)] ?? [];
    for (let tap = 0; image.length > 0 && tap < kernel ** 2; tap++) {
      const iy = Math.floor(pixel / width) + Math.floor(tap / kernel) - 3;
      const ix = (pixel % width) + (tap % kernel) - 3;
      if (iy < 0 || iy >= height || ix < 0 || ix >= width) continue;
      const value = at(image, (iy * width + ix) * channels + (number % channels));
      expected[i] = at(expected, i) + value * at(weights, tap * 2 * channels + number);
    }
  }
  expect(relativeRms(await backend.read(y), expected)).toBeLessThan(1e-6);
  scope.dispose();
});

test('the norm over 8 and 160 channels, a pixel of zeros and one of large numbers', async () => {
  for (const [channels, input] of [
    [8, 'f16'],
    [160, 'f32'],
  ] as const) {
    const scope = new Scope(backend);
    const pixels = 21;
    const x = numbers(pixels * channels, 1, input);
    x.fill(0, 0, channels);
    for (let c = 0; c < channels; c++) x[channels + c] = 60000 * (c % 2 ? 1 : -1);
    const gamma = numbers(channels, 2);
    const y = scope.float32([pixels * channels], 'activations');
    const run = {
      x: upload(scope, x, input),
      gamma: upload(scope, gamma, 'f32'),
      y,
      input,
      output: 'f32',
      pixels,
      channels,
    } as const;
    await compute.dispatch(channelNormDispatches(compute, run));
    const expected = Float64Array.from(x, (value, i) => {
      const start = i - (i % channels);
      const mean = x.subarray(start, start + channels).reduce((s, v) => s + v * v, 0) / channels;
      const normed = (value / Math.sqrt(mean + 1e-24)) * at(gamma, i % channels);
      return normed / (1 + Math.exp(-normed));
    });
    expect(relativeRms(await backend.read(y), expected)).toBeLessThan(1e-5);
    scope.dispose();
  }
});

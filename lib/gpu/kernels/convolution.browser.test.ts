import { afterAll, expect, test } from 'vitest';
import { createBackend, relativeRms } from '..';
import { Scope } from '../backend';
import { channelNormDispatches } from './channel-norm';
import type { ConvolutionVariant } from './choice';
import { depthwiseDispatch } from './depthwise';
import {
  at,
  type ConvolutionCase,
  convolved,
  height,
  numbers,
  upload,
  usual,
  width,
} from './testing/convolution';

/** Geometry is no part of the results; a small tile compiles fast. */
const small: ConvolutionVariant = { pixels: 16, filters: 16, threadPixels: 1, threadFilters: 4 };

const backend = await createBackend('webgpu');
afterAll(() => backend.dispose());
if (!backend.compute) throw new Error('the GPU runs no kernels');
const { compute } = backend;

const computed = (scope: Scope, given: ConvolutionCase, variant = small, limits = compute.limits) =>
  convolved({ backend, scope }, given, variant, limits);

async function errorOf(given: ConvolutionCase) {
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
  const bands = await computed(scope, given, { ...small, pixels: 32, threadPixels: 2 }, limits);
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

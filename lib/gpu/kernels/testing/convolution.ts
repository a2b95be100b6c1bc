import type { Backend, Scope } from '../../backend';
import type { DeviceTensor } from '../../tensor';
import type { ConvolutionShape, ConvolutionVariant } from '../choice';
import type { Compute } from '../compute';
import { type ConvolutionRun, convolutionDispatches } from '../convolution-run';
import { packedDims, packedRows, packJob } from '../convolution-weights';
import { fromHalf, toHalf } from '../half';
import type { Storage } from '../kernel';

/** Size of the images. */
export const [height, width] = [11, 7];

/** Numbers in (−1, 1), the same for the same seed. */
export function numbers(
  count: number,
  seed: number,
  storage: Storage = 'f32',
): Float32Array<ArrayBuffer> {
  let state = seed * 7919 + 1;
  const values = Float32Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 31 - 1;
  });
  return storage === 'f32' ? values : fromHalf(toHalf(values));
}

export const at = (values: ArrayLike<number>, index: number) => values[index] ?? Number.NaN;

/** A convolution of an image, or of three frames. */
export interface ConvolutionCase {
  readonly inputs: number;
  readonly filters: number;
  /** Of the weights. */
  readonly storage: Storage;
  /** Of the images; that of the weights when absent. */
  readonly input?: Storage;
  readonly output: Storage;
  readonly residual: ConvolutionShape['residual'];
  /** Frames that there are, of three. */
  readonly frames: number;
  readonly scale: 1 | 2;
  readonly sideInputs: number;
  readonly activation: ConvolutionShape['activation'];
  readonly shuffled: boolean;
}

export const usual: ConvolutionCase = {
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

/** A tensor with values in a storage. */
export function upload(scope: Scope, values: Float32Array<ArrayBuffer>, storage: Storage) {
  return storage === 'f32'
    ? scope.float32([values.length], 'activations', values)
    : scope.tensor('float16', [values.length], 'activations', toHalf(values));
}

/**
 * Computes a case on a device, and in double precision.
 *
 * @param limits those of the device unless given
 */
export async function convolved(
  { backend, scope }: { readonly backend: Backend; readonly scope: Scope },
  given: ConvolutionCase,
  variant: ConvolutionVariant,
  limits?: Compute['limits'],
) {
  const { compute } = backend;
  if (!compute) throw new Error('the GPU runs no kernels');
  const { inputs, filters, storage, output, residual, frames, scale, sideInputs } = given;
  const { input = storage } = given;
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
    input,
    weight: storage,
    output,
    residual,
    side: input,
    bias: true,
    activation,
    shuffled,
    wholeVectors: filters % 4 === 0,
  };
  const run: ConvolutionRun = {
    x: images.map((image) => upload(scope, image, input)),
    weights,
    bias: upload(scope, bias, 'f32'),
    slope: activation === 'prelu' ? upload(scope, slope, 'f32') : undefined,
    side: ['none', 'stored'].includes(residual) ? undefined : upload(scope, sideValues, input),
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
    ...convolutionDispatches({ limits: limits ?? compute.limits }, variant, shape, run),
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

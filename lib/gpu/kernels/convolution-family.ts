import { memoised } from '../../graph';
import * as reference from '../reference';
import { numbers } from '../reference';
import { checkEach, extremeRows, stored, tolerances, upload } from './check';
import type { ConvolutionShape, ConvolutionVariant } from './choice';
import { convolutionVariants, plainConvolution } from './convolution';
import { matrixConvolutionVariants, withoutWindow } from './convolution-matrix';
import { convolutionDispatches, wholeKernel } from './convolution-run';
import {
  type FilterOrder,
  packedDims,
  packedRows,
  packJob,
  packKernels,
} from './convolution-weights';
import { halfBits, halves, type KernelFamily } from './family';
import { fromHalf } from './half';
import type { Storage } from './kernel';
import { matrixResults } from './linear-matrix';
import { suited } from './registers';

/** The shape of a causal convolution. */
export function convolutionShape(output: Storage): ConvolutionShape {
  return { ...plainConvolution, frames: 3, input: 'f16', weight: 'f16', output, side: 'f16' };
}

/** The shape that is checked: what it adds is in f16. */
export const checkedConvolution: ConvolutionShape = {
  ...convolutionShape('f32'),
  residual: 'same',
};

/** Sums that matrix units add up from products of f16: how they round is up to them. */
const matrixSums = 1e-4;

interface ImageSize {
  readonly height: number;
  readonly width: number;
  readonly channels: number;
  readonly filters: number;
}

/** The image of the check, and the rows of one that are timed. */
const small = { height: 9, width: 19, channels: 40, filters: 136 };
export const timedBand = { height: 352, width: 160, channels: 256, filters: 256 } as const;

/** Sizes of a 3×3 convolution that keeps those of its image. */
function sameSize({ height, width, channels, filters }: ImageSize) {
  const around = { kernel: [3, 3], pads: [1, 1] } as const;
  return {
    height,
    width,
    inputs: channels,
    filters,
    ...around,
    outputHeight: height,
    outputWidth: width,
  };
}

/** Filters of three frames as a file may have them: [filters, 3·channels, 3, 3], or one frame's behind another's. */
function filterOrder({ channels, filters }: ImageSize, interleaved: boolean): FilterOrder {
  const taps = 9;
  const [block, filter] = interleaved
    ? [taps * channels, 3 * taps * channels]
    : [filters * channels * taps, channels * taps];
  return { blocks: 3, filters, channels, taps, strides: { block, filter, channel: taps, tap: 1 } };
}

/** Numbers of a convolution over so many frames, and its result in double precision. */
const randomNumbers = memoised((frames: number) => {
  const { height, width, channels, filters } = small;
  const pixels = height * width;
  const block = filters * channels * 9;
  const weight = stored(numbers(3 * block, 8), 'f16');
  const bias = numbers(filters, 9);
  const side = stored(numbers(pixels * filters, 15), 'f16');
  const images = Array.from({ length: frames }, (_, age) =>
    stored(extremeRows(pixels, channels, 10 + age), 'f16'),
  );
  const values = Float64Array.from(side);
  for (const [age, image] of images.entries()) {
    const part = reference.convolution(
      image,
      weight.subarray(age * block, (age + 1) * block),
      age === 0 ? bias : new Float32Array(filters),
      { layout: 'nhwc', images: 1, ...small },
    );
    part.forEach((value, i) => {
      values[i] = (values[i] ?? 0) + value;
    });
  }
  return { weight, bias, side, images, values };
});

const resultsOf = ({ matrix, threadPixels, threadFilters }: ConvolutionVariant) =>
  matrix ? matrixResults(matrix) : threadPixels * threadFilters;

export const convolution: KernelFamily<ConvolutionVariant> = {
  name: 'convolution',
  variants: (device) => suited(device, 'convolution', convolutionVariants(device), resultsOf),
  results: resultsOf,
  kernel: (variant, work) =>
    wholeKernel(variant, convolutionShape(work === 'timed' ? 'f16' : 'f32')),
  checked: (variant) => [
    ...[variant, withoutWindow(variant)].map((form) => wholeKernel(form, checkedConvolution)),
    ...packKernels,
  ],
  // Over three frames, and over one in the form that takes other sizes of filters.
  check: (device, variant) =>
    checkEach(device, [1, 3], (scope, frames) => {
      const { filters } = small;
      const order = filterOrder(small, false);
      const { weight, bias, side, images, values } = randomNumbers(frames);
      const dims = packedDims(packedRows(order), filters);
      const weights = scope.tensor('float16', dims, 'activations');
      const y = scope.float32([small.height * small.width, filters], 'activations');
      const form = frames === 1 ? withoutWindow(variant) : variant;
      const runs = convolutionDispatches(device.compute, form, checkedConvolution, {
        x: images.map((image) => upload(scope, image, 'f16')),
        weights,
        bias: upload(scope, bias, 'f32'),
        side: upload(scope, side, 'f16'),
        sideInputs: filters,
        y,
        ...sameSize(small),
      });
      const tolerance = variant.matrix ? matrixSums : tolerances.f32;
      return {
        jobs: [packJob(upload(scope, weight, 'f32'), order, weights), ...runs],
        y,
        width: filters,
        expected: [{ values, tolerance }],
      };
    }),
  flops: 2 * 27 * timedBand.channels ** 2 * timedBand.width * timedBand.height,
  work: async (scope, compute) => {
    const { width, height, channels } = timedBand;
    const order = filterOrder(timedBand, true);
    const count = 27 * channels ** 2;
    const image = () => halves(scope, [height, width, channels]);
    const operands = {
      x: [image(), image(), image()],
      weights: scope.tensor('float16', packedDims(packedRows(order), channels), 'weights'),
      bias: scope.float32([channels], 'activations'),
      y: scope.tensor('float16', [height, width, channels], 'activations'),
    };
    const source = scope.float32([count], 'weights', fromHalf(halfBits(count)));
    await compute.dispatch([packJob(source, order, operands.weights)]);
    return {
      result: operands.y,
      jobs: async (variant, share) =>
        convolutionDispatches(compute, variant, convolutionShape('f16'), {
          ...operands,
          ...sameSize({ ...timedBand, height: Math.ceil(height * share) }),
        }),
    };
  },
};

export const matrixConvolution: KernelFamily<ConvolutionVariant> = {
  ...convolution,
  name: 'matrixConvolution',
  variants: (device) => matrixConvolutionVariants(device, convolutionVariants(device)),
};

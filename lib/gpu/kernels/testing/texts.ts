import { matrixFeature } from '../../../contract';
import { attentionKernel } from '../attention';
import { fastAttentionKernel } from '../attention-dp4a';
import { quantiseKernels, quantiseValuesKernels } from '../attention-quantise';
import { channelNormKernel } from '../channel-norm';
import type {
  AttentionShape,
  AttentionVariant,
  ConvolutionShape,
  ConvolutionVariant,
  LinearShape,
  LinearVariant,
} from '../choice';
import { convolutionKernel, fittedVariant } from '../convolution';
import { wholeKernel } from '../convolution-run';
import { packKernels } from '../convolution-weights';
import { depthwiseKernel } from '../depthwise';
import { families } from '../families';
import { bySize, type KernelFamily, type Variant } from '../family';
import { gatherHeadsKernel } from '../gather';
import type { Kernel } from '../kernel';
import { integerDots, subgroupSizeControl } from '../kernel';
import { linearKernel } from '../linear';
import { type FastLinearShape, fastLinearKernel } from '../linear-dp4a';
import { peakKernels } from '../peak';
import {
  geluErfFormula,
  headRowsKernel,
  layerNormKernel,
  pointwiseKernel,
  siluFormula,
  sumKernel,
  weightedSumFormula,
} from '../pointwise';
import { quantiseKernel } from '../quantise';
import { softmaxKernel } from '../softmax';

/** A device that runs every variant. */
export const completeDevice = {
  features: new Set(['shader-f16', 'subgroups', 'subgroup_id', matrixFeature, integerDots]),
  limits: { workgroupBytes: 65_536, threads: 1024, bindingBytes: 2 ** 31, storageBuffers: 8 },
  matrices: { configs: [{ m: 16, n: 16, k: 16 }], subgroupSize: 32 },
};

/** One whose compilers choose the size of subgroups, and with it how many registers a thread has. */
export const dividingDevice = {
  features: new Set([...completeDevice.features, subgroupSizeControl]),
  limits: completeDevice.limits,
  matrices: completeDevice.matrices,
  subgroupSizes: { least: 8, most: 32 },
};

type Choices<T> = { readonly [K in keyof T]: readonly T[K][] };

/** Every combination of the choices. */
function combinations<T extends object>(choices: Choices<T>): T[] {
  const entries = Object.entries(choices) as [string, readonly unknown[]][];
  return entries.reduce<object[]>(
    (all, [key, values]) => all.flatMap((one) => values.map((value) => ({ ...one, [key]: value }))),
    [{}],
  ) as T[];
}

const storages = ['f32', 'f16'] as const;
const widths = [96, 3072] as const;

const linearShapes = combinations<LinearShape>({
  k: [96],
  n: [76, 202],
  weight: ['f32', 'bf16', 'q8', 'q4'],
  input: storages,
  output: storages,
  bias: [true],
  rank: [0, 12],
  epilogue: ['none', 'gelu', 'added', 'gated', 'times'],
  counted: [false, true],
}).flatMap((shape) => {
  const isNarrow = shape.rank === 12 && shape.input === shape.output && !shape.counted;
  return isNarrow ? [shape, { ...shape, up: 'bf16' } as const] : [shape];
});

const attentionShapes = combinations<AttentionShape>({
  headSize: [40, 128],
  q: storages,
  kv: storages,
  out: storages,
  bias: ['none', 'last', 'full'],
});

const convolutionShapes = combinations<ConvolutionShape>({
  frames: [1, 3],
  input: storages,
  weight: ['f32', 'f16', null],
  output: storages,
  residual: ['none', 'stored', 'same', 'repeated', 'linear'],
  side: storages,
  bias: [true],
  activation: [null],
  shuffled: [false],
  wholeVectors: [true, false],
});

const activatedShapes = combinations<ConvolutionShape>({
  frames: [1, 2],
  input: storages,
  weight: storages,
  output: storages,
  residual: ['none', 'stored', 'same'],
  side: storages,
  bias: [true],
  activation: ['relu'],
  shuffled: [false, true],
  wholeVectors: [true],
});

const slopedShapes = activatedShapes
  .filter(({ frames, residual, shuffled }) => frames === 1 && residual === 'none' && !shuffled)
  .map((shape) => ({ ...shape, activation: 'prelu' as const }));

const allConvolutions = [...convolutionShapes, ...activatedShapes, ...slopedShapes];

/** The kernels of the shapes that are not refused. */
function made<S>(shapes: readonly S[], make: (shape: S) => Kernel) {
  return shapes.flatMap((shape) => {
    try {
      return [make(shape)];
    } catch (error) {
      if (error instanceof RangeError) return [];
      throw error;
    }
  });
}

/** What a variant of a family is checked and timed with. */
function ofVariant<V extends Variant>(family: KernelFamily<V>, variant: V): readonly Kernel[] {
  return [...family.checked(variant), family.kernel(variant, 'timed')];
}

const allFamilies: readonly KernelFamily[] = Object.values(families);

/** The best guesses of kernels that ask for a size of subgroups. */
function sizedKernels(): readonly Kernel[] {
  return allFamilies.flatMap((family) =>
    family
      .variants(dividingDevice)
      .slice(0, 1)
      .flatMap((variant) => ofVariant(family, variant)),
  );
}

/**
 * The texts of all kernels, by their keys: every variant with the shapes of its check, and every shape with the
 * smallest variant of each kind.
 */
export function allKernels(): readonly Kernel[] {
  const checked = allFamilies.flatMap((family) =>
    family.variants(completeDevice).flatMap((variant) => ofVariant(family, variant)),
  );
  const { linear, fastLinear, attention, fastAttention } = families;
  const matrixLinear = families.matrixLinear.variants(completeDevice);
  const convolution = families.convolution.variants(completeDevice);
  const matrixConvolution = families.matrixConvolution.variants(completeDevice);
  const smallest = <V extends LinearVariant | AttentionVariant>(family: KernelFamily<V>) =>
    storages.flatMap((shared) => {
      const all = family.variants(completeDevice);
      return bySize(
        family,
        all.filter((variant) => variant.shared === shared),
      ).slice(0, 1);
    });
  const linears = [...smallest(linear), ...matrixLinear.slice(-1)];
  const convolutions = convolution.slice(-1).flatMap((one) => [one, fittedVariant(one, 3)]);
  const isWindow = ({ matrix }: ConvolutionVariant) => matrix?.window !== undefined;
  const matrixConvolutions = [
    ...matrixConvolution.filter(isWindow).slice(-1),
    ...matrixConvolution.slice(-1),
  ];
  const shaped = [
    ...linears.flatMap((variant) => made(linearShapes, (shape) => linearKernel(variant, shape))),
    ...smallest(fastLinear).flatMap((variant) =>
      made(
        linearShapes.filter((shape): shape is FastLinearShape => shape.weight.startsWith('q')),
        (shape) => fastLinearKernel(variant, shape),
      ),
    ),
    ...smallest(attention).flatMap((variant) =>
      attentionShapes.map((shape) => attentionKernel(variant, shape)),
    ),
    ...smallest(fastAttention).flatMap((variant) =>
      made(attentionShapes, (shape) => fastAttentionKernel(variant, shape)),
    ),
    ...convolutions.flatMap((variant) =>
      made(allConvolutions, (shape) => convolutionKernel(variant, shape)),
    ),
    ...matrixConvolutions.flatMap((variant) =>
      made(
        allConvolutions.filter(({ weight }) => weight === 'f16'),
        (shape) => wholeKernel(variant, shape),
      ),
    ),
  ];
  const rest = [
    ...packKernels,
    softmaxKernel,
    ...Object.values(peakKernels),
    ...storages.flatMap((storage) => [
      ...storages.flatMap((output) => [
        channelNormKernel(storage, output),
        depthwiseKernel(storage, output),
      ]),
      channelNormKernel(storage, 'f32', true),
      ...widths.map((k) => quantiseKernel(k, storage)),
      ...[40, 128].flatMap((headSize) => [
        ...quantiseKernels(storage, headSize),
        ...quantiseValuesKernels(storage, headSize),
      ]),
      ...widths.map((width) => layerNormKernel({ width, epsilon: 1e-6, output: storage })),
    ]),
    gatherHeadsKernel(64),
    ...widths.flatMap((width) => [
      pointwiseKernel({ ...geluErfFormula, width, inputs: 1, numbers: 0 }),
      pointwiseKernel({ ...siluFormula, width, inputs: 1, numbers: 0 }),
      pointwiseKernel({ ...weightedSumFormula(5), width, inputs: 5, numbers: 5 }),
    ]),
    ...widths.flatMap((width) => [false, true].map((inPlace) => sumKernel({ width, inPlace }))),
    ...combinations<Parameters<typeof headRowsKernel>[0]>({
      width: widths,
      headSize: [32],
      input: storages,
      output: [...storages, null],
      norm: [null, { epsilon: 1e-6 }],
      rotary: [false, true],
    }).map(headRowsKernel),
  ];
  const all = [...checked, ...shaped, ...rest, ...sizedKernels()];
  return [...new Map(all.map((kernel) => [kernel.key, kernel])).values()];
}

import { attentionKernel, attentionResults, attentionVariants } from './attention';
import { fastAttentionKernel, fastAttentionVariants } from './attention-dp4a';
import {
  matrixAttentionKernel,
  matrixAttentionResults,
  matrixAttentionVariants,
} from './attention-matrix';
import { quantiseKernels, quantiseValuesKernels } from './attention-quantise';
import type {
  AttentionVariant,
  ConvolutionVariant,
  Family,
  KernelChoice,
  LinearVariant,
  MatrixAttentionVariant,
} from './choice';
import type { Compute } from './compute';
import { convolutionVariants } from './convolution';
import { matrixConvolutionVariants } from './convolution-matrix';
import { wholeKernel } from './convolution-run';
import { hash, integerDots, type KernelMode } from './kernel';
import { linearKernel, linearVariants } from './linear';
import { fastLinearKernel, fastLinearVariants } from './linear-dp4a';
import {
  matrixFeatures,
  matrixLinearVariants,
  matrixResults,
  matrixTilings,
} from './linear-matrix';
import { gainsByIntegers } from './peak-rate';
import { quantiseKernel } from './quantise';
import { suited } from './registers';
import { attentionShape, convolutionShape, fastLinearShape, linearShape } from './tuned-shapes';

type Device = Pick<Compute, 'features' | 'limits' | 'matrices' | 'subgroupSizes'> &
  Partial<Pick<Compute, 'peak'>>;

/** A variant of any family. */
export type Variant =
  | LinearVariant
  | AttentionVariant
  | MatrixAttentionVariant
  | ConvolutionVariant;

/** Numbers that a thread of a variant adds to in registers. */
export function resultsOf(variant: Variant): number {
  if ('parts' in variant) return matrixAttentionResults(variant);
  if ('queries' in variant) return attentionResults(variant);
  if (variant.matrix) return matrixResults(variant.matrix);
  if ('threadPixels' in variant) return variant.threadPixels * variant.threadFilters;
  return variant.threadRows * variant.threadColumns;
}

/** From the fewest results per thread, which compile fastest, to the most; of equal ones the last comes first. */
export function smallestFirst<T>(all: readonly T[], results: (one: T) => number): readonly T[] {
  return all.toReversed().toSorted((a, b) => results(a) - results(b));
}

/** Variants from the smallest to the largest. */
export function bySize<V extends Variant>(variants: readonly V[]): readonly V[] {
  return smallestFirst(variants, resultsOf);
}

/** The variants of each family that fit a device, the best guess first. */
export function variantsOf(device: Device): {
  readonly linear: readonly LinearVariant[];
  readonly attention: readonly AttentionVariant[];
  readonly convolution: readonly ConvolutionVariant[];
  readonly fastLinear: readonly LinearVariant[];
  readonly fastAttention: readonly AttentionVariant[];
  readonly matrixLinear: readonly LinearVariant[];
  readonly matrixConvolution: readonly ConvolutionVariant[];
  readonly matrixAttention: readonly MatrixAttentionVariant[];
} {
  const linear = linearVariants(device);
  const convolution = convolutionVariants(device);
  const of = <V extends Variant>(family: Family, variants: readonly V[]) =>
    suited(device, family, variants, resultsOf);
  return {
    linear: of('linear', linear),
    attention: of('attention', attentionVariants(device)),
    convolution: of('convolution', convolution),
    fastLinear: of('fastLinear', fastLinearVariants(device)),
    fastAttention: of('fastAttention', fastAttentionVariants(device)),
    matrixLinear: matrixLinearVariants(device, linear),
    matrixConvolution: matrixConvolutionVariants(device, convolution),
    matrixAttention: matrixAttentionVariants(device),
  };
}

const exactFamilies = ['linear', 'attention', 'convolution'] as const;
const familiesOfMode = {
  exact: [],
  fast: ['fastLinear', 'fastAttention'],
  matrix: ['matrixAttention', 'matrixConvolution'],
} as const;

/** What computes in a mode: families of its own, and those of `exact` for the rest. */
export function familiesOf(mode: KernelMode): readonly Family[] {
  return [...exactFamilies, ...familiesOfMode[mode]];
}

/**
 * The best guess for a device on which nothing was measured.
 *
 * @param software takes the smallest tiles: an emulated GPU compiles them in a second, the others in many
 */
export function defaultChoice(device: Device, mode: KernelMode, software = false): KernelChoice {
  const variants = variantsOf(device);
  const guess = <V extends Variant>(family: readonly V[]) =>
    (software ? bySize(family)[0] : family[0]) ?? null;
  return {
    mode,
    linear: guess(mode === 'matrix' ? variants.matrixLinear : variants.linear),
    attention: guess(variants.attention),
    convolution: guess(variants.convolution),
    ...(mode === 'fast' && {
      fastLinear: guess(variants.fastLinear),
      fastAttention: guess(variants.fastAttention),
    }),
    ...(mode === 'matrix' && {
      matrixAttention: guess(variants.matrixAttention),
      matrixConvolution: guess(variants.matrixConvolution),
    }),
  };
}

/** The modes that a device has kernels of; `fast` not where its peak was measured and integers are no faster. */
export function modesOf(device: Device): readonly KernelMode[] {
  const gains = !device.peak || gainsByIntegers(device.peak);
  return [
    'exact',
    ...(device.features.has(integerDots) && gains ? (['fast'] as const) : []),
    ...(matrixTilings(device).length > 0 ? (['matrix'] as const) : []),
  ];
}

/**
 * The mode in which a choice computes: `exact` where none of the mode's own families has a variant.
 *
 * @returns null where a family has none that every mode needs: then the runtime computes what needs it
 */
export function modeOf(choice: KernelChoice): KernelMode | null {
  const { mode, linear, attention, convolution, fastLinear, fastAttention } = choice;
  if (!linear || !attention || !convolution) return null;
  return mode === 'fast' && !fastLinear && !fastAttention ? 'exact' : mode;
}

/**
 * Names the texts of the kernels: what was measured with others is not valid any more. Those of matrices are always
 * among them, as a device has them in the mode `matrix` only.
 */
export function kernelSetOf(device: Device): string {
  const { linear, attention, convolution, ...fast } = variantsOf(device);
  const matrices = { configs: [{ m: 8, n: 8, k: 8 }], subgroupSize: 32 };
  const features = new Set([...device.features, ...matrixFeatures]);
  const complete = { ...device, features, matrices };
  const matrixLinear = matrixLinearVariants(complete, linear);
  return hash(
    [
      ...[...linear, ...matrixLinear].map((variant) => linearKernel(variant, linearShape('small'))),
      ...attention.map((variant) => attentionKernel(variant, attentionShape('none'))),
      ...[...convolution, ...matrixConvolutionVariants(complete, convolution)].map((variant) =>
        wholeKernel(variant, convolutionShape('f32')),
      ),
      ...matrixAttentionVariants(complete).map((variant) =>
        matrixAttentionKernel(variant, attentionShape('none')),
      ),
      ...fast.fastLinear.map((variant) => fastLinearKernel(variant, fastLinearShape('small'))),
      ...fast.fastAttention.map((variant) => fastAttentionKernel(variant, attentionShape('none'))),
      quantiseKernel(fastLinearShape('small').k, 'f16'),
      ...quantiseKernels('f16', attentionShape('none').headSize),
      ...quantiseValuesKernels('f16', attentionShape('none').headSize),
    ]
      .map(({ key }) => key)
      .join(),
  );
}

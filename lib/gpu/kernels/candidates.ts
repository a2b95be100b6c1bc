import type { Backend, Scope } from '../backend';
import type { ReadableTensor } from '../tensor';
import { attentionDispatch, attentionKernel } from './attention';
import { fastAttentionDispatch, fastAttentionKernel } from './attention-dp4a';
import { matrixAttentionDispatch, matrixAttentionKernel } from './attention-matrix';
import {
  packedValues,
  packedWidth,
  type QuantisedHeads,
  quantiseKernels,
  quantiseRows,
  quantiseValues,
  quantiseValuesKernels,
} from './attention-quantise';
import {
  checkAttention,
  checkConvolution,
  checkedConvolutions,
  checkedLinears,
  checkLinear,
  checkMatrixAttention,
} from './check';
import { checkedFastLinears, checkFastAttention, checkFastLinear } from './check-fast';
import type {
  AttentionVariant,
  ConvolutionVariant,
  LinearShape,
  LinearVariant,
  MatrixAttentionVariant,
} from './choice';
import type { Compute, Dispatch } from './compute';
import { convolutionDispatches, wholeKernel } from './convolution-run';
import { packedDims, packedRows, packJob, packKernels } from './convolution-weights';
import { fromHalf } from './half';
import type { Kernel, KernelMode } from './kernel';
import { linearDispatch, linearKernel } from './linear';
import { fastLinearDispatch, fastLinearKernel } from './linear-dp4a';
import { quantiseDispatch } from './quantise';
import type { Candidate, TunedFamily } from './tune';
import {
  attentionShape,
  convolutionShape,
  fastLinearShape,
  interleaved,
  linearShape,
  sameSize,
  wholeRows,
} from './tuned-shapes';
import { bySize, familiesOf, resultsOf, type Variant, variantsOf } from './variants';

/** What the candidates of a device are made with. */
export interface TunedFamilyOptions {
  readonly backend: Backend;
  readonly compute: Compute;
  readonly mode: KernelMode;
  /** Whether variants are timed too. Where not, those that compile fast come first. */
  readonly timing: boolean;
  /** Owns the tensors of the timed work. */
  readonly scope: Scope;
}

/** A variant with the kernel that is timed. */
export interface TimedCandidate<V = unknown> extends Candidate<V> {
  readonly timed: Kernel;
}

/** A family whose timed work is known, so that others can compute the same. */
export interface TimedFamily<V = unknown> extends TunedFamily<V> {
  readonly candidates: readonly TimedCandidate<V>[];
  /** What the timed work has computed; of a share of it, the first rows are. */
  result(): ReadableTensor;
}

/** The families of kernels of a mode as the tuner sees them. */
export function tunedFamilies(options: TunedFamilyOptions): readonly TimedFamily[] {
  const families = {
    linear: linearFamily,
    attention: attentionFamily,
    convolution: (of: TunedFamilyOptions) => convolutionFamily(of, 'convolution'),
    fastLinear: fastLinearFamily,
    fastAttention: fastAttentionFamily,
    matrixConvolution: (of: TunedFamilyOptions) => convolutionFamily(of, 'matrixConvolution'),
    matrixAttention: matrixAttentionFamily,
  };
  return familiesOf(options.mode).map((family) => families[family](options));
}

/**
 * Rows of a chunk of tokens, of a part of the queries, and of an image; the model's own sizes otherwise. So many that a
 * GPU of 150 processors has several workgroups for each; smaller ones are timed with a share.
 */
export const timedSizes = {
  tokens: 8192,
  queries: 16_384,
  keys: 27_280,
  heads: 2,
  headSize: 128,
  band: { height: 352, width: 160, channels: 256 },
} as const;
/** Of the queries: with logits of a deviation of 2 a query attends to some keys, as in a model. */
export const queryScale = 6;
const { tokens, queries, keys, heads, headSize, band } = timedSizes;

/** Filters of three frames as a file may have them: [filters, 3·channels, 3, 3]. */
const filterOrder = {
  blocks: 3,
  filters: band.channels,
  channels: band.channels,
  taps: 9,
  strides: { block: 9 * band.channels, filter: 27 * band.channels, channel: 9, tap: 1 },
} as const;

function linearFamily(options: TunedFamilyOptions): TimedFamily<LinearVariant> {
  const { backend, compute, mode, timing, scope } = options;
  const timed = linearShape('timed');
  const { linear, matrixLinear } = variantsOf(compute);
  const variants = mode === 'matrix' ? matrixLinear : linear;
  const work = once(() => ({
    x: wholeRows(halves(scope, [tokens, timed.k])),
    ...layer(scope, timed),
  }));
  return {
    family: 'linear',
    flops: 2 * tokens * timed.n * timed.k,
    candidates: ordered(variants, timing).map((variant) =>
      candidateOf(variant, linearKernel(variant, timed), checkedLinears(variant), timing),
    ),
    check: ({ variant }) => checkLinear({ backend, compute }, variant),
    result: () => work().result,
    run: ({ variant }, share, times) => {
      const job = linearDispatch(variant, timed, { ...work(), rows: Math.ceil(tokens * share) });
      return repeated(options, [job], times);
    },
  };
}

/** The rounding of x is not timed: several layers share it, and it is the same for all variants. */
function fastLinearFamily(options: TunedFamilyOptions): TimedFamily<LinearVariant> {
  const { backend, compute, timing, scope } = options;
  const timed = fastLinearShape('timed');
  const { k } = timed;
  const work = once(() => ({
    source: wholeRows(halves(scope, [tokens, k])),
    x: wholeRows(scope.tensor('int32', [tokens, k / 4], 'activations')),
    xScales: wholeRows(scope.float32([tokens, k / 32], 'activations')),
    ...layer(scope, timed),
  }));
  const rounded = once(() =>
    compute.dispatch([quantiseDispatch(k, 'f16', { rows: tokens, ...work() })]),
  );
  return {
    family: 'fastLinear',
    flops: 2 * tokens * timed.n * timed.k,
    candidates: ordered(variantsOf(compute).fastLinear, timing).map((variant) =>
      candidateOf(variant, fastLinearKernel(variant, timed), checkedFastLinears(variant), timing),
    ),
    check: ({ variant }) => checkFastLinear({ backend, compute }, variant),
    result: () => work().result,
    run: async ({ variant }, share, times) => {
      await rounded();
      const rows = Math.ceil(tokens * share);
      return repeated(options, [fastLinearDispatch(variant, timed, { ...work(), rows })], times);
    },
  };
}

function fastAttentionFamily(options: TunedFamilyOptions): TimedFamily<AttentionVariant> {
  const { backend, compute, timing, scope } = options;
  const shape = attentionShape('none');
  const inBytes = (rows: number): QuantisedHeads => ({
    values: scope.tensor('int32', [heads, rows, packedWidth(headSize)], 'activations'),
    scales: scope.float32([heads, rows], 'activations'),
  });
  const work = once(() => ({
    source: attended(scope),
    q: inBytes(queries),
    k: inBytes(keys),
    v: {
      values: scope.tensor('int32', [heads, packedValues(keys, headSize)], 'activations'),
      ranges: scope.float32([heads, 2, headSize], 'activations'),
    },
    mean: scope.float32([heads, headSize], 'activations'),
  }));
  const rounding = { storage: 'f16', headSize, heads } as const;
  const roundedKeys = once(() => {
    const { source, k, v, mean } = work();
    const of = { ...rounding, rows: keys };
    return compute.dispatch([
      ...quantiseRows({ ...of, x: source.k, y: k, mean }),
      ...quantiseValues({ ...of, x: source.v, y: v }),
    ]);
  });
  let roundedRows = 0;
  /** Where heads lie in 8 bits follows from the number of rows. */
  const roundQueries = async (rows: number) => {
    if (rows === roundedRows) return;
    roundedRows = rows;
    const { source, q } = work();
    await compute.dispatch(quantiseRows({ ...rounding, rows, x: source.q, y: q }));
  };
  return {
    family: 'fastAttention',
    flops: 4 * heads * queries * keys * headSize,
    candidates: ordered(variantsOf(compute).fastAttention, timing).map((variant) => {
      const timed = fastAttentionKernel(variant, shape);
      const others = [
        ...quantiseKernels('f16', headSize),
        ...quantiseValuesKernels('f16', headSize),
      ];
      return candidateOf(variant, timed, [timed, ...others], timing);
    }),
    check: ({ variant }) => checkFastAttention({ backend, compute }, variant),
    result: () => work().source.result,
    run: async ({ variant }, share, times) => {
      const rows = Math.ceil(queries * share);
      await roundedKeys();
      await roundQueries(rows);
      const { source, q, k, v } = work();
      const run = { ...source, q, k, v, rows };
      return repeated(options, [fastAttentionDispatch(variant, shape, run)], times);
    },
  };
}

/** Operands of self-attention. */
function attended(scope: Scope) {
  const width = heads * headSize;
  const view = (rows: number, scale?: number) =>
    interleaved(halves(scope, [rows, width], scale), heads, headSize);
  const result = scope.tensor('float16', [queries, width], 'activations');
  return {
    q: view(queries, queryScale),
    k: view(keys),
    v: view(keys),
    out: interleaved(result, heads, headSize),
    result,
    heads,
    keys,
    scale: 1 / Math.sqrt(headSize),
  };
}

function matrixAttentionFamily(options: TunedFamilyOptions): TimedFamily<MatrixAttentionVariant> {
  const { backend, compute, timing, scope } = options;
  const shape = attentionShape('none');
  const work = once(() => attended(scope));
  return {
    family: 'matrixAttention',
    flops: 4 * heads * queries * keys * headSize,
    candidates: ordered(variantsOf(compute).matrixAttention, timing).map((variant) => {
      const timed = matrixAttentionKernel(variant, shape);
      return candidateOf(variant, timed, [timed], timing);
    }),
    check: ({ variant }) => checkMatrixAttention({ backend, compute }, variant),
    result: () => work().result,
    run: ({ variant }, share, times) => {
      const rows = Math.ceil(queries * share);
      const job = matrixAttentionDispatch(variant, shape, { ...work(), rows });
      return repeated(options, [job], times);
    },
  };
}

function attentionFamily(options: TunedFamilyOptions): TimedFamily<AttentionVariant> {
  const { backend, compute, timing, scope } = options;
  const shape = attentionShape('none');
  const work = once(() => attended(scope));
  return {
    family: 'attention',
    flops: 4 * heads * queries * keys * headSize,
    candidates: ordered(variantsOf(compute).attention, timing).map((variant) => {
      const timed = attentionKernel(variant, shape);
      const checked = [timed, attentionKernel(variant, attentionShape('last'))];
      return candidateOf(variant, timed, checked, timing);
    }),
    check: ({ variant }) => checkAttention({ backend, compute }, variant),
    result: () => work().result,
    run: ({ variant }, share, times) => {
      const rows = Math.ceil(queries * share);
      const job = attentionDispatch(variant, shape, { ...work(), rows });
      return repeated(options, [job], times);
    },
  };
}

function convolutionFamily(
  { backend, compute, timing, scope }: TunedFamilyOptions,
  family: 'convolution' | 'matrixConvolution',
): TimedFamily<ConvolutionVariant> {
  const { width, height, channels } = band;
  const shape = convolutionShape('f16');
  const image = () => halves(scope, [height, width, channels]);
  const filters = 27 * channels ** 2;
  const work = once(() => ({
    x: [image(), image(), image()],
    weights: scope.tensor('float16', packedDims(packedRows(filterOrder), channels), 'weights'),
    bias: scope.float32([channels], 'activations'),
    y: scope.tensor('float16', [height, width, channels], 'activations'),
  }));
  const packed = once(() => {
    const source = scope.float32([filters], 'weights', fromHalf(halfBits(filters)));
    return compute.dispatch([packJob(source, filterOrder, work().weights)]);
  });
  return {
    family,
    flops: 2 * 27 * channels * channels * width * height,
    candidates: ordered(variantsOf(compute)[family], timing).map((variant) => {
      const checked = [...checkedConvolutions(variant), ...packKernels];
      return candidateOf(variant, wholeKernel(variant, shape), checked, timing);
    }),
    check: ({ variant }) => checkConvolution({ backend, compute }, variant),
    result: () => work().y,
    run: async ({ variant }, share, times) => {
      await packed();
      const jobs = convolutionDispatches(compute, variant, shape, {
        ...work(),
        ...sameSize({ ...band, height: Math.ceil(height * share) }),
      });
      return repeated({ backend, compute }, jobs, times);
    },
  };
}

function candidateOf<V extends Variant>(
  variant: V,
  timed: Kernel,
  checked: readonly Kernel[],
  timing: boolean,
): TimedCandidate<V> {
  const name = timed.name.replace(/^[^,]*, /, '');
  const kernels = timing && !checked.includes(timed) ? [...checked, timed] : checked;
  const results = resultsOf(variant);
  // Tiles in f16 suit a device or do not, whatever their size.
  const half = 'shared' in variant && variant.shared === 'f16' && !('matrix' in variant);
  const registerClass = half ? 'f16' : `${results}`;
  return { variant, key: timed.key, name, registerClass, results, kernels, timed };
}

/** Without timing the smallest text comes first: an emulated GPU takes seconds to compile a large one. */
function ordered<V extends Variant>(variants: readonly V[], timing: boolean): readonly V[] {
  return timing ? variants : bySize(variants);
}

async function repeated(
  { backend, compute }: Pick<TunedFamilyOptions, 'backend' | 'compute'>,
  jobs: readonly Dispatch[],
  times: number,
): Promise<void> {
  await compute.dispatch(Array.from({ length: times }, () => jobs).flat());
  await backend.settle();
}

/** Makes a value at its first use. */
function once<T>(make: () => T): () => T {
  let cached: { readonly value: T } | undefined;
  return () => {
    cached ??= { value: make() };
    return cached.value;
  };
}

/** What a linear kernel is timed with beside its rows. */
function layer(scope: Scope, { n, k }: Pick<LinearShape, 'n' | 'k'>) {
  const result = scope.tensor('float16', [tokens, n], 'activations');
  return { result, y: wholeRows(result), ...timedLayer(scope, { n, k }) };
}

/** The weight of the timed layer in blocks of 8 bits, and a bias of zeros. */
export function timedLayer(scope: Scope, { n, k }: Pick<LinearShape, 'n' | 'k'>) {
  const words = new Uint8Array(halfBits(n * k).buffer, 0, n * k);
  const scales = new Float32Array((n * k) / 32).fill(1e-3);
  return {
    values: scope.tensor('uint8', [n, k / 32, 32], 'weights', words),
    scales: scope.float32([n, k / 32], 'weights', scales),
    bias: scope.float32([n], 'weights'),
  };
}

/** A tensor of f16 numbers of usual size, or larger ones. */
function halves(scope: Scope, dims: readonly number[], scale?: number) {
  const count = dims.reduce((product, size) => product * size, 1);
  return scope.tensor('float16', dims, 'activations', halfBits(count, scale));
}

/**
 * The content of any timed operand: f16 from 1/8 to 1/4, of both signs; zeros would spare the device work. Rows of a
 * usual width differ.
 *
 * @param scale binary logarithm of a factor, with which the numbers are others
 */
export function halfBits(count: number, scale = 0): Uint16Array<ArrayBuffer> {
  const words = new Uint16Array(count);
  let state = 1 + scale;
  // A prime.
  const first = Math.min(count, 4099);
  for (let i = 0; i < first; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    words[i] = (0x3000 + (scale << 10)) | ((state >>> 16) & 0x83ff);
  }
  for (let done = first; done < count; done *= 2) words.copyWithin(done, 0, done);
  return words;
}

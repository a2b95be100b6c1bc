import type { Backend, Scope } from '../backend';
import { type AttentionVariant, attentionDispatch, attentionKernel } from './attention';
import { fastAttentionDispatch, fastAttentionKernel } from './attention-dp4a';
import {
  type MatrixAttentionVariant,
  matrixAttentionDispatch,
  matrixAttentionKernel,
} from './attention-matrix';
import {
  packedValues,
  packedWidth,
  type QuantisedHeads,
  quantiseKernels,
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
import type { Compute, Dispatch } from './compute';
import type { ConvolutionVariant } from './convolution';
import { convolutionDispatches, wholeKernel } from './convolution-run';
import { packedDims, packedRows, packKernels } from './convolution-weights';
import type { Kernel, KernelMode } from './kernel';
import { type LinearShape, type LinearVariant, linearDispatch, linearKernel } from './linear';
import { fastLinearDispatch, fastLinearKernel } from './linear-dp4a';
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

/** The families of kernels of a mode as the tuner sees them. */
export function tunedFamilies(options: TunedFamilyOptions): readonly TunedFamily[] {
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
const tokens = 8192;
const queries = 16_384;
const keys = 27_280;
const band = { height: 352, width: 160, channels: 256 };

function linearFamily(options: TunedFamilyOptions): TunedFamily<LinearVariant> {
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
    run: ({ variant }, share, times) => {
      const job = linearDispatch(variant, timed, { ...work(), rows: Math.ceil(tokens * share) });
      return repeated(options, [job], times);
    },
  };
}

/** The rounding of x is not timed: several layers share it, and it is the same for all variants. */
function fastLinearFamily(options: TunedFamilyOptions): TunedFamily<LinearVariant> {
  const { backend, compute, timing, scope } = options;
  const timed = fastLinearShape('timed');
  const work = once(() => ({
    x: wholeRows(bytes(scope, tokens * timed.k)),
    xScales: wholeRows(factors(scope, (tokens * timed.k) / 32)),
    ...layer(scope, timed),
  }));
  return {
    family: 'fastLinear',
    flops: 2 * tokens * timed.n * timed.k,
    candidates: ordered(variantsOf(compute).fastLinear, timing).map((variant) =>
      candidateOf(variant, fastLinearKernel(variant, timed), checkedFastLinears(variant), timing),
    ),
    check: ({ variant }) => checkFastLinear({ backend, compute }, variant),
    run: ({ variant }, share, times) => {
      const job = fastLinearDispatch(variant, timed, {
        ...work(),
        rows: Math.ceil(tokens * share),
      });
      return repeated(options, [job], times);
    },
  };
}

function fastAttentionFamily(options: TunedFamilyOptions): TunedFamily<AttentionVariant> {
  const { backend, compute, timing, scope } = options;
  const [heads, size] = [2, 128];
  const shape = attentionShape('none');
  const inBytes = (rows: number): QuantisedHeads => ({
    values: bytes(scope, 4 * heads * rows * packedWidth(size)),
    scales: factors(scope, heads * rows),
  });
  const work = once(() => ({
    q: inBytes(queries),
    k: inBytes(keys),
    v: {
      values: bytes(scope, 4 * heads * packedValues(keys, size)),
      ranges: factors(scope, 2 * heads * size),
    },
    out: interleaved(scope.tensor('float16', [queries, heads * size], 'activations'), heads, size),
  }));
  return {
    family: 'fastAttention',
    flops: 4 * heads * queries * keys * size,
    candidates: ordered(variantsOf(compute).fastAttention, timing).map((variant) => {
      const timed = fastAttentionKernel(variant, shape);
      const rounding = [...quantiseKernels('f16', size), ...quantiseValuesKernels('f16', size)];
      return candidateOf(variant, timed, [timed, ...rounding], timing);
    }),
    check: ({ variant }) => checkFastAttention({ backend, compute }, variant),
    run: ({ variant }, share, times) => {
      const rows = Math.ceil(queries * share);
      const call = { ...work(), heads, rows, keys, scale: 1 / Math.sqrt(size) };
      return repeated(options, [fastAttentionDispatch(variant, shape, call)], times);
    },
  };
}

/** Operands of self-attention. */
function attended(scope: Scope, heads: number, size: number) {
  const view = (rows: number) => interleaved(halves(scope, [rows, heads * size]), heads, size);
  const out = scope.tensor('float16', [queries, heads * size], 'activations');
  return {
    q: view(queries),
    k: view(keys),
    v: view(keys),
    out: interleaved(out, heads, size),
    heads,
    keys,
    scale: 1 / Math.sqrt(size),
  };
}

function matrixAttentionFamily(options: TunedFamilyOptions): TunedFamily<MatrixAttentionVariant> {
  const { backend, compute, timing, scope } = options;
  const [heads, size] = [2, 128];
  const shape = attentionShape('none');
  const work = once(() => attended(scope, heads, size));
  return {
    family: 'matrixAttention',
    flops: 4 * heads * queries * keys * size,
    candidates: ordered(variantsOf(compute).matrixAttention, timing).map((variant) => {
      const timed = matrixAttentionKernel(variant, shape);
      return candidateOf(variant, timed, [timed], timing);
    }),
    check: ({ variant }) => checkMatrixAttention({ backend, compute }, variant),
    run: ({ variant }, share, times) => {
      const rows = Math.ceil(queries * share);
      const job = matrixAttentionDispatch(variant, shape, { ...work(), rows });
      return repeated(options, [job], times);
    },
  };
}

function attentionFamily(options: TunedFamilyOptions): TunedFamily<AttentionVariant> {
  const { backend, compute, timing, scope } = options;
  const [heads, size] = [2, 128];
  const shape = attentionShape('none');
  const work = once(() => attended(scope, heads, size));
  return {
    family: 'attention',
    flops: 4 * heads * queries * keys * size,
    candidates: ordered(variantsOf(compute).attention, timing).map((variant) => {
      const timed = attentionKernel(variant, shape);
      const checked = [timed, attentionKernel(variant, attentionShape('last'))];
      return candidateOf(variant, timed, checked, timing);
    }),
    check: ({ variant }) => checkAttention({ backend, compute }, variant),
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
): TunedFamily<ConvolutionVariant> {
  const { width, height, channels } = band;
  const shape = convolutionShape('f16');
  const strides = { block: 0, filter: 0, channel: 0, tap: 0 };
  const rows = packedRows({ blocks: 3, filters: channels, channels, taps: 9, strides });
  const image = () => halves(scope, [height, width, channels]);
  const work = once(() => ({
    x: [image(), image(), image()],
    weights: halves(scope, packedDims(rows, channels)),
    bias: scope.float32([channels], 'activations'),
    y: scope.tensor('float16', [height, width, channels], 'activations'),
  }));
  return {
    family,
    flops: 2 * 27 * channels * channels * width * height,
    candidates: ordered(variantsOf(compute)[family], timing).map((variant) => {
      const checked = [...checkedConvolutions(variant), ...packKernels];
      return candidateOf(variant, wholeKernel(variant, shape), checked, timing);
    }),
    check: ({ variant }) => checkConvolution({ backend, compute }, variant),
    run: ({ variant }, share, times) => {
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
): Candidate<V> {
  const name = timed.name.replace(/^[^,]*, /, '');
  const kernels = timing && !checked.includes(timed) ? [...checked, timed] : checked;
  const results = resultsOf(variant);
  // Tiles in f16 suit a device or do not, whatever their size.
  const half = 'shared' in variant && variant.shared === 'f16' && !('matrix' in variant);
  const registerClass = half ? 'f16' : `${results}`;
  return { variant, key: timed.key, name, registerClass, results, kernels };
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
  return {
    y: wholeRows(scope.tensor('float16', [tokens, n], 'activations')),
    values: bytes(scope, n * k),
    scales: factors(scope, (n * k) / 32),
    bias: scope.float32([n], 'activations'),
  };
}

function bytes(scope: Scope, count: number) {
  const words = new Uint8Array(bits(count).buffer, 0, count);
  return scope.tensor('uint8', [count], 'activations', words);
}

function factors(scope: Scope, count: number) {
  return scope.float32([count], 'activations', new Float32Array(count).fill(1e-3));
}

/** A tensor of f16 numbers of usual size. */
function halves(scope: Scope, dims: readonly number[]) {
  const count = dims.reduce((product, size) => product * size, 1);
  return scope.tensor('float16', dims, 'activations', bits(count));
}

/** f16 numbers from 1/8 to 1/4, of both signs; zeros would spare the device work. */
function bits(count: number): Uint16Array<ArrayBuffer> {
  const words = new Uint16Array(count);
  let state = 1;
  const first = Math.min(count, 4096);
  for (let i = 0; i < first; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    words[i] = 0x3000 | ((state >>> 16) & 0x83ff);
  }
  for (let done = first; done < count; done *= 2) words.copyWithin(done, 0, done);
  return words;
}

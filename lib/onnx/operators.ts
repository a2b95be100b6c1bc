import type { Attribute } from './graph';
import {
  addDims,
  broadcastDims,
  type Dim,
  dim,
  type ElementType,
  type FloatType,
  normaliseAxis,
  reject,
  requireDtype,
  requireRank,
  requireSameDim,
  requireSameDtype,
  Value,
} from './value';

/*
 * Operators as functions over typed values. Each checks arity, dtype and rank while the graph is
 * built and gives its result's shape; semantics are those of the ONNX operator named in the call.
 */

type Float = Value<FloatType>;

function one<T extends ElementType>(
  op: string,
  domain: '' | 'com.microsoft' | 'com.ms.internal.nhwc',
  inputs: readonly (Value | null)[],
  attributes: Readonly<Record<string, Attribute>>,
  dtype: T,
  dims: readonly Dim[],
): Value<T> {
  const first = inputs[0];
  if (!(first instanceof Value)) reject(op, 'the first input is missing');
  const [result] = first.graph.node(op, domain, inputs, attributes, [{ dtype, dims }]);
  return result as Value<T>;
}

function binary(op: string) {
  return <T extends FloatType>(a: Value<T>, b: Value<T>): Value<T> => {
    requireDtype(op, a, 'float32', 'float16');
    requireSameDtype(op, a, b);
    return one(op, '', [a, b], {}, a.dtype, broadcastDims(op, a.dims, b.dims));
  };
}

function unary(op: string, domain: '' | 'com.microsoft' = '', attributes = {}) {
  return <T extends FloatType>(x: Value<T>): Value<T> => {
    requireDtype(op, x, 'float32', 'float16');
    return one(op, domain, [x], attributes, x.dtype, x.dims);
  };
}

/** x + y; axes of size 1 are repeated, as in {@link sub}, {@link mul} and {@link div}. */
export const add = binary('Add');
/** x − y. */
export const sub = binary('Sub');
/** x · y, element by element. */
export const mul = binary('Mul');
/** x / y. */
export const div = binary('Div');
/** √x. */
export const sqrt = unary('Sqrt');
/** tanh(x). */
export const tanh = unary('Tanh');
/** max(x, 0). */
export const relu = unary('Relu');
/** 1 / (1 + exp(−x)). */
export const sigmoid = unary('Sigmoid');
/** max(x, 0) + slope·min(x, 0). */
export function leakyRelu(x: Value<'float32'>, slope: number): Value<'float32'> {
  return unary('LeakyRelu', '', { alpha: { float: slope } })(x);
}
/** min(max(x, low), high). */
export function clip(x: Value<'float32'>, low: number, high: number): Value<'float32'> {
  requireDtype('Clip', x, 'float32');
  const { graph } = x;
  return one('Clip', '', [x, graph.scalar(low), graph.scalar(high)], {}, 'float32', x.dims);
}
/** GELU in its exact form, x·Φ(x) by the error function (Hendrycks & Gimpel 2016). */
export const gelu = unary('Gelu');
/** GELU in its tanh form (Hendrycks & Gimpel 2016), `gelu_new` of transformers. */
export const geluTanh = unary('Gelu', '', { approximate: 'tanh' });
/** SiLU, x·sigmoid(x): QuickGelu with α = 1. */
export const silu = unary('QuickGelu', 'com.microsoft', { alpha: { float: 1 } });

/** Matrix product over the last two axes, leading axes broadcast. */
export function matMul<T extends FloatType>(a: Value<T>, b: Value<T>): Value<T> {
  const op = 'MatMul';
  requireDtype(op, a, 'float32', 'float16');
  requireSameDtype(op, a, b);
  if (a.rank < 2 || b.rank < 2) reject(op, `${a} and ${b} must have at least rank 2`);
  requireSameDim(op, 'inner dimensions', dim(op, a, -1), dim(op, b, -2));
  const leading = broadcastDims(op, a.dims.slice(0, -2), b.dims.slice(0, -2));
  return one(op, '', [a, b], {}, a.dtype, [...leading, dim(op, a, -2), dim(op, b, -1)]);
}

/** `x·Wᵀ + b`: x [M, K], weight [N, K] as PyTorch stores it, bias [N]. */
export function gemm<T extends FloatType>(
  x: Value<T>,
  weight: Value<T>,
  bias: Value<T> | null,
): Value<T> {
  const op = 'Gemm';
  requireDtype(op, x, 'float32', 'float16');
  requireSameDtype(op, x, weight, ...(bias ? [bias] : []));
  requireRank(op, x, 2);
  requireRank(op, weight, 2);
  requireSameDim(op, 'inner dimensions', dim(op, x, 1), dim(op, weight, 1));
  const n = dim(op, weight, 0);
  if (bias) {
    requireRank(op, bias, 1);
    requireSameDim(op, 'bias and rows', dim(op, bias, 0), n);
  }
  return one(op, '', [x, weight, bias], { transB: 1 }, x.dtype, [dim(op, x, 0), n]);
}

/**
 * `x·Wᵀ + b` with W in blocks of 32 along K (com.microsoft MatMulNBits): 8 bits with zero point 128,
 * or 4 bits with zero point 8 and the even element in the low nibble.
 *
 * x [M, K] float32 · values [N, K/32, 32·bits/8] uint8 · scales [N, K/32] float32 · bias [N] float32
 */
export function matMulBlocks(
  x: Value<'float32'>,
  values: Value<'uint8'>,
  scales: Value<'float32'>,
  bias: Value<'float32'> | null,
  bits: 8 | 4,
): Value<'float32'> {
  const op = 'MatMulNBits';
  requireDtype(op, x, 'float32');
  requireDtype(op, values, 'uint8');
  requireDtype(op, scales, 'float32');
  requireRank(op, x, 2);
  requireRank(op, values, 3);
  requireRank(op, scales, 2);
  const [n, blocks, size] = values.dims;
  const bytes = 4 * bits;
  if (typeof n !== 'number' || typeof blocks !== 'number' || size !== bytes) {
    reject(op, `${values} must be [N, K/32, ${bytes}] with known sizes`);
  }
  requireSameDim(op, 'K', dim(op, x, 1), blocks * 32);
  requireSameDim(op, 'rows of the scales', dim(op, scales, 0), n);
  requireSameDim(op, 'blocks of the scales', dim(op, scales, 1), blocks);
  if (bias) {
    requireRank(op, bias, 1);
    requireDtype(op, bias, 'float32');
    requireSameDim(op, 'bias and rows', dim(op, bias, 0), n);
  }
  const attributes = { K: blocks * 32, N: n, bits, block_size: 32, accuracy_level: 1 };
  const inputs = bias ? [x, values, scales, null, null, bias] : [x, values, scales];
  return one(op, 'com.microsoft', inputs, attributes, 'float32', [dim(op, x, 0), n]);
}

/** Layer normalisation over the last axis: scale [C], optional bias [C]. */
export function layerNormalization(
  x: Value<'float32'>,
  scale: Value<'float32'>,
  bias: Value<'float32'> | null,
  epsilon: number,
): Value<'float32'> {
  const op = 'LayerNormalization';
  requireDtype(op, x, 'float32');
  for (const parameter of bias ? [scale, bias] : [scale]) {
    requireRank(op, parameter, 1);
    requireSameDim(op, 'channels', dim(op, parameter, 0), dim(op, x, -1));
  }
  const attributes = { axis: -1, epsilon: { float: epsilon } };
  return one(op, '', bias ? [x, scale, bias] : [x, scale], attributes, 'float32', x.dims);
}

/** RMS normalisation over the last axis, `x / sqrt(mean(x²) + ε) · scale`. */
export function rmsNormalization(
  x: Value<'float32'>,
  scale: Value<'float32'>,
  epsilon: number,
): Value<'float32'> {
  const op = 'SimplifiedLayerNormalization';
  requireDtype(op, x, 'float32');
  requireRank(op, scale, 1);
  requireSameDim(op, 'channels', dim(op, scale, 0), dim(op, x, -1));
  const attributes = { axis: -1, epsilon: { float: epsilon }, stash_type: 1 };
  return one(op, '', [x, scale], attributes, 'float32', x.dims);
}

/**
 * Rotary embedding with interleaved pairs (2i, 2i+1).
 *
 * x [B, S, heads·D] · cos, sin [B, S, D/2]
 */
export function rotaryEmbedding(
  x: Value<'float32'>,
  cos: Value<'float32'>,
  sin: Value<'float32'>,
  heads: number,
): Value<'float32'> {
  const op = 'RotaryEmbedding';
  requireDtype(op, x, 'float32');
  requireSameDtype(op, x, cos, sin);
  for (const value of [x, cos, sin]) requireRank(op, value, 3);
  const channels = dim(op, x, 2);
  if (typeof channels !== 'number' || channels % (2 * heads) !== 0) {
    reject(op, `${x} does not split into ${heads} heads of pairs`);
  }
  for (const table of [cos, sin]) {
    requireSameDim(op, 'pairs', dim(op, table, 2), channels / heads / 2);
    requireSameDim(op, 'positions', dim(op, table, 1), dim(op, x, 1));
  }
  const attributes = { interleaved: 1, num_heads: heads };
  return one(op, '', [x, cos, sin], attributes, 'float32', x.dims);
}

/**
 * softmax(q·kᵀ·scale + bias)·v, heads interleaved in the last axis (com.microsoft
 * MultiHeadAttention). Never the ai.onnx Attention: that one has no GPU kernel.
 *
 * q [B, L, heads·D] · k, v [B, S, heads·D] · bias [1|B, 1|heads, L, S]
 */
export function multiHeadAttention(
  q: Value<'float32'>,
  k: Value<'float32'>,
  v: Value<'float32'>,
  options: { heads: number; scale: number; bias?: Value<'float32'> },
): Value<'float32'> {
  const op = 'MultiHeadAttention';
  requireDtype(op, q, 'float32');
  requireSameDtype(op, q, k, v);
  for (const value of [q, k, v]) requireRank(op, value, 3);
  requireSameDim(op, 'channels of q and k', dim(op, q, 2), dim(op, k, 2));
  requireSameDim(op, 'rows of k and v', dim(op, k, 1), dim(op, v, 1));
  const channels = dim(op, v, 2);
  if (typeof channels === 'number' && channels % options.heads !== 0) {
    reject(op, `${channels} channels do not split into ${options.heads} heads`);
  }
  if (options.bias) {
    requireRank(op, options.bias, 4);
    requireSameDim(op, 'rows of the bias', dim(op, options.bias, 2), dim(op, q, 1));
    requireSameDim(op, 'columns of the bias', dim(op, options.bias, 3), dim(op, k, 1));
  }
  const inputs = options.bias ? [q, k, v, null, null, options.bias] : [q, k, v];
  const attributes = { num_heads: options.heads, scale: { float: options.scale } };
  return one(op, 'com.microsoft', inputs, attributes, 'float32', [
    dim(op, q, 0),
    dim(op, q, 1),
    channels,
  ]);
}

/** exp(x) / Σ exp(x) along an axis, the last one by default. */
export function softmax(x: Value<'float32'>, axis = -1): Value<'float32'> {
  requireDtype('Softmax', x, 'float32');
  normaliseAxis('Softmax', x.rank, axis);
  return one('Softmax', '', [x], { axis }, 'float32', x.dims);
}

/**
 * Gives a tensor new dimensions with the same elements. A symbolic size that stands at the same
 * place before and after is kept; beyond those at most one may be symbolic: it takes what is left
 * (the runtime's −1).
 */
export function reshape<T extends ElementType>(x: Value<T>, dims: readonly Dim[]): Value<T> {
  const op = 'Reshape';
  const kept = (size: Dim, axis: number) => typeof size === 'string' && x.dims[axis] === size;
  const open = dims.filter((size, axis) => typeof size === 'string' && !kept(size, axis));
  if (open.length > 1) reject(op, `[${dims.join(', ')}] has more than one unknown size`);
  const count = (sizes: readonly Dim[]) =>
    sizes.every((size) => typeof size === 'number')
      ? sizes.reduce((product: number, size) => product * size, 1)
      : null;
  const before = count(x.dims);
  const after = count(dims);
  if (before !== null && after !== null && before !== after) {
    reject(op, `${x} does not fit into [${dims.join(', ')}]`);
  }
  // 0 keeps the size at its place; where it is the only unknown, −1 says the same.
  const shape = dims.map((size, axis) => {
    if (typeof size === 'number') return size;
    return kept(size, axis) ? 0 : -1;
  });
  return one(op, '', [x, x.graph.shape(shape)], {}, x.dtype, dims);
}

/** Inserts an axis of size 1. */
export function unsqueeze<T extends ElementType>(x: Value<T>, axis: number): Value<T> {
  const at = normaliseAxis('Unsqueeze', x.rank + 1, axis);
  const dims = [...x.dims.slice(0, at), 1, ...x.dims.slice(at)];
  return one('Unsqueeze', '', [x, x.graph.shape([at])], {}, x.dtype, dims);
}

/** Reorders the axes: axis i of the result is axis `permutation[i]` of x. */
export function transpose<T extends ElementType>(
  x: Value<T>,
  permutation: readonly number[],
): Value<T> {
  const op = 'Transpose';
  const sorted = [...permutation].sort((a, b) => a - b);
  if (permutation.length !== x.rank || sorted.some((axis, index) => axis !== index)) {
    reject(op, `[${permutation.join(', ')}] is no permutation of the axes of ${x}`);
  }
  const dims = permutation.map((axis) => dim(op, x, axis));
  return one(op, '', [x], { perm: permutation }, x.dtype, dims);
}

/** Joins tensors along an axis; their other axes are equal. */
export function concat<T extends ElementType>(values: readonly Value<T>[], axis: number): Value<T> {
  const op = 'Concat';
  const [first, ...rest] = values;
  if (!first) reject(op, 'there is nothing to join');
  requireSameDtype(op, first, ...rest);
  const at = normaliseAxis(op, first.rank, axis);
  const dims = [...first.dims];
  for (const value of rest) {
    requireRank(op, value, first.rank);
    value.dims.forEach((size, index) => {
      const known = dims[index] ?? 1;
      dims[index] =
        index === at ? addDims(known, size) : requireSameDim(op, `axis ${index}`, known, size);
    });
  }
  return one(op, '', values, { axis: at }, first.dtype, dims);
}

/** Cuts an axis of known size into parts of the given sizes. */
export function split<T extends ElementType>(
  x: Value<T>,
  axis: number,
  sizes: readonly number[],
): Value<T>[] {
  const op = 'Split';
  const at = normaliseAxis(op, x.rank, axis);
  const total = sizes.reduce((sum, size) => sum + size, 0);
  if (dim(op, x, at) !== total) reject(op, `axis ${axis} of ${x} is not ${sizes.join(' + ')}`);
  const outputs = sizes.map((size) => ({
    dtype: x.dtype,
    dims: x.dims.map((old, index) => (index === at ? size : old)),
  }));
  return x.graph.node(op, '', [x, x.graph.shape(sizes)], { axis: at }, outputs) as Value<T>[];
}

/** Elements [start, end) of an axis. Float only: other types would run on the CPU. */
export function slice(
  x: Float & Value<'float32'>,
  axis: number,
  start: number,
  end: number,
): Value<'float32'> {
  const op = 'Slice';
  requireDtype(op, x, 'float32');
  const at = normaliseAxis(op, x.rank, axis);
  const size = dim(op, x, at);
  if (start < 0 || end <= start || (typeof size === 'number' && end > size)) {
    reject(op, `[${start}, ${end}) is outside axis ${axis} of ${x}`);
  }
  const { graph } = x;
  const inputs = [x, graph.shape([start]), graph.shape([end]), graph.shape([at])];
  const dims = x.dims.map((old, index) => (index === at ? end - start : old));
  return one(op, '', inputs, {}, 'float32', dims);
}

/** Rows of `table` (axis 0) by index. */
export function gather<T extends ElementType>(table: Value<T>, indices: Value<'int32'>): Value<T> {
  const op = 'Gather';
  requireDtype(op, indices, 'int32', 'int64');
  const dims = [...indices.dims, ...table.dims.slice(1)];
  return one(op, '', [table, indices], { axis: 0 }, table.dtype, dims);
}

/** Stride 1, no padding and one group where nothing is given. */
export interface Conv2dOptions {
  readonly stride?: number;
  /** Zero padding: top, left, bottom, right. */
  readonly pads?: readonly [number, number, number, number];
  readonly group?: number;
}

/**
 * Two-dimensional convolution.
 *
 * x [N, C, H, W], or [N, H, W, C] for `layout: 'nhwc'` (ORT's internal domain, GPU only) ·
 * weight [Co, C/group, kh, kw] in both · bias [Co]
 */
export function conv2d(
  x: Value<'float32'>,
  weight: Value<'float32'>,
  bias: Value<'float32'> | null,
  layout: 'nchw' | 'nhwc',
  options: Conv2dOptions = {},
): Value<'float32'> {
  const op = 'Conv';
  const { stride = 1, pads = [0, 0, 0, 0], group = 1 } = options;
  requireDtype(op, x, 'float32');
  requireSameDtype(op, x, weight, ...(bias ? [bias] : []));
  requireRank(op, x, 4);
  requireRank(op, weight, 4);
  const channelAxis = layout === 'nchw' ? 1 : 3;
  const [height, width] = layout === 'nchw' ? [2, 3] : [1, 2];
  const channels = dim(op, x, channelAxis);
  const perGroup = dim(op, weight, 1);
  if (typeof channels === 'number' && typeof perGroup === 'number') {
    requireSameDim(op, 'input channels', channels, perGroup * group);
  }
  const kernel = [dim(op, weight, 2), dim(op, weight, 3)].map((size) =>
    typeof size === 'number' ? size : reject(op, `${weight} must have a known kernel`),
  ) as [number, number];
  const along = (size: Dim, index: 0 | 1): Dim => {
    const padding = pads[index] + pads[(index + 2) as 2 | 3];
    if (typeof size === 'number') return Math.floor((size + padding - kernel[index]) / stride) + 1;
    return stride === 1 && padding === kernel[index] - 1 ? size : `conv(${size})`;
  };
  const output = [...x.dims];
  output[channelAxis] = dim(op, weight, 0);
  output[height as number] = along(dim(op, x, height as number), 0);
  output[width as number] = along(dim(op, x, width as number), 1);
  const attributes = {
    kernel_shape: kernel,
    strides: [stride, stride],
    pads,
    dilations: [1, 1],
    group,
  };
  const domain = layout === 'nhwc' ? 'com.ms.internal.nhwc' : '';
  const inputs = bias ? [x, weight, bias] : [x, weight];
  return one(op, domain, inputs, attributes, 'float32', output);
}

/**
 * {@link conv2d} of images whose channels are last: x [N, H, W, C].
 *
 * @param layout that the runtime's kernel wants
 */
export function convolution(
  x: Value<'float32'>,
  weight: Value<'float32'>,
  bias: Value<'float32'> | null,
  layout: 'nchw' | 'nhwc',
  options: Conv2dOptions = {},
): Value<'float32'> {
  if (layout === 'nhwc') return conv2d(x, weight, bias, layout, options);
  const y = conv2d(transpose(x, [0, 3, 1, 2]), weight, bias, layout, options);
  return transpose(y, [0, 2, 3, 1]);
}

/**
 * Height and width times `scale` by linear interpolation between the centres of pixels, without antialiasing:
 * x [N, C, H, W].
 */
export function resizeLinear(x: Value<'float32'>, scale: number): Value<'float32'> {
  const op = 'Resize';
  requireDtype(op, x, 'float32');
  requireRank(op, x, 4);
  const dims = x.dims.map((size, axis) => {
    if (axis < 2) return size;
    const scaled = typeof size === 'number' ? size * scale : 0;
    return Number.isInteger(scaled) && scaled > 0
      ? scaled
      : reject(op, `${size} · ${scale} is not a size`);
  });
  const scales = x.graph.constant('float32', [4], Float32Array.of(1, 1, scale, scale));
  const attributes = { mode: 'linear', coordinate_transformation_mode: 'half_pixel' };
  return one(op, '', [x, null, scales], attributes, 'float32', dims);
}

/**
 * Pixels of x [N, C, H, W] at places between them, bilinear; beyond the edge it goes on as it ends. In the form of
 * operator sets 16 to 19.
 *
 * @param grid [N, h, w, 2], columns and rows, −1 the first pixel's centre and 1 the last one's
 */
export function gridSample(x: Value<'float32'>, grid: Value<'float32'>): Value<'float32'> {
  const op = 'GridSample';
  requireDtype(op, x, 'float32');
  requireSameDtype(op, x, grid);
  for (const value of [x, grid]) requireRank(op, value, 4);
  requireSameDim(op, 'columns and rows', dim(op, grid, 3), 2);
  const dims = [dim(op, x, 0), dim(op, x, 1), dim(op, grid, 1), dim(op, grid, 2)];
  const attributes = { mode: 'bilinear', padding_mode: 'border', align_corners: 1 };
  return one(op, '', [x, grid], attributes, 'float32', dims);
}

/**
 * Spreads channels over blocks of `block`×`block` pixels: channel `(row·block + column)·C + c` of a
 * pixel becomes channel c of the pixel at (row, column) of its block (ONNX mode DCR).
 *
 * x [N, C·block², H, W], or [N, H, W, C·block²] for `layout: 'nhwc'` (ORT's internal domain, GPU
 * only)
 */
export function depthToSpace(
  x: Value<'float32'>,
  block: number,
  layout: 'nchw' | 'nhwc',
): Value<'float32'> {
  const op = 'DepthToSpace';
  requireDtype(op, x, 'float32');
  requireRank(op, x, 4);
  const channelAxis = layout === 'nchw' ? 1 : 3;
  const channels = dim(op, x, channelAxis);
  if (typeof channels !== 'number' || channels % block ** 2 !== 0) {
    reject(op, `${channels} channels do not fill blocks of ${block}×${block}`);
  }
  const dims = x.dims.map((size, axis): Dim => {
    if (axis === 0) return size;
    if (axis === channelAxis) return channels / block ** 2;
    return typeof size === 'number' ? size * block : `${block}*${size}`;
  });
  const domain = layout === 'nhwc' ? 'com.ms.internal.nhwc' : '';
  return one(op, domain, [x], { blocksize: block, mode: 'DCR' }, 'float32', dims);
}

/** Four images [1, H, W, C] as the pixels (0,0), (0,1), (1,0), (1,1) of 2×2 blocks. */
export function interleave(
  phases: readonly Value<'float32'>[],
  layout: 'nchw' | 'nhwc',
): Value<'float32'> {
  return pixelShuffle(concat(phases, 3), layout);
}

/** [1, H, W, 4·C] → [1, 2H, 2W, C]; channel `(row·2 + column)·C + c` goes to (row, column). */
export function pixelShuffle(x: Value<'float32'>, layout: 'nchw' | 'nhwc'): Value<'float32'> {
  if (layout === 'nhwc') return depthToSpace(x, 2, layout);
  return transpose(depthToSpace(transpose(x, [0, 3, 1, 2]), 2, layout), [0, 2, 3, 1]);
}

import {
  add,
  type Conv2dOptions,
  conv2d,
  geluTanh,
  gemm,
  matMul,
  matMulBlocks,
  mul,
  multiHeadAttention,
  softmax,
  transpose,
} from './operators';
import { dim, reject, type Value } from './value';

/*
 * The named calls of a model's code: the operators that take nearly all of its time. A backend computes
 * a graph as a whole, or it computes a graph part by part (`Graph.parts`) and may then answer each of
 * these calls with a kernel of its own. What a call computes is written here once, as operators.
 */

type Float = Value<'float32'>;

/** `y = W·x + b`, with a low-rank branch beside it and an epilogue behind it. */
export interface LinearCall {
  readonly operator: 'linear';
  readonly spec: {
    readonly inFeatures: number;
    readonly outFeatures: number;
    /** Of a weight in blocks of 32; null for plain float32. */
    readonly bits: 8 | 4 | null;
    readonly bias: boolean;
    /** Whether `up·(down·x)` is added. */
    readonly lora: boolean;
    /** GELU in its tanh form, of the sum so far. */
    readonly activation: 'none' | 'gelu';
    /** Adds the result, or `gate ⊙` the result, to `residual`. */
    readonly residual: 'none' | 'added' | 'gated';
  };
}

/** Inputs of a {@link LinearCall}, as its spec says; the result is [L, N]. */
export interface LinearInputs {
  readonly x: Float; // [L, K]
  readonly weight?: Float; // [N, K]
  readonly values?: Value<'uint8'>; // [N, K/32, 4·bits]
  readonly scales?: Float; // [N, K/32]
  readonly bias?: Float; // [N]
  readonly down?: Float; // [rank, K]
  readonly up?: Float; // [N, rank]
  readonly residual?: Float; // [L, N]
  readonly gate?: Float; // [N]
}

/** `softmax(q·kᵀ·scale + bias)·v`, heads interleaved in the last axis. */
export interface AttentionCall {
  readonly operator: 'attention';
  readonly spec: {
    readonly heads: number;
    readonly headSize: number;
    readonly scale: number;
    /** Whether something is added to the logits. */
    readonly bias: boolean;
  };
}

/** Inputs of an {@link AttentionCall}; the result has the shape of `q`. */
export interface AttentionInputs {
  readonly q: Float; // [1, L, heads·headSize], or [L, headSize] for a single head
  readonly k: Float; // [1, S, heads·headSize], or [S, headSize]
  readonly v: Float; // as k
  readonly bias?: Float; // [1, 1 or heads, L, S]
}

/** A two-dimensional convolution of stacked frames: inputs `x`, `weight`, `bias`. */
export interface ConvolutionCall {
  readonly operator: 'convolution';
  readonly spec: {
    /** The layout that the runtime's kernel wants; tensors are NHWC in any case. */
    readonly layout: 'nhwc' | 'nchw';
    readonly inputs: number;
    readonly filters: number;
    readonly kernel: readonly [height: number, width: number];
    readonly stride: number;
    /** Zero padding: top, left, bottom, right. */
    readonly pads: readonly [number, number, number, number];
    /** Groups of channels; as many as there are channels for a depthwise convolution. */
    readonly group: number;
    readonly bias: boolean;
  };
}

export type Call = LinearCall | AttentionCall | ConvolutionCall;

/** The inputs of a call by their roles. */
export type CallInputs = Readonly<Record<string, Value>>;

/** @throws TypeError where the inputs are not those that the spec names */
export function linear(spec: LinearCall['spec'], inputs: LinearInputs): Float {
  return inputs.x.graph.call({ operator: 'linear', spec }, { ...inputs });
}

/** @throws TypeError where the inputs are not those that the spec names */
export function attention(spec: AttentionCall['spec'], inputs: AttentionInputs): Float {
  return inputs.q.graph.call({ operator: 'attention', spec }, { ...inputs });
}

/**
 * A convolution as a named call.
 *
 * @param x [frames, H, W, inputs]
 * @param weight [filters, inputs/group, kernel height, kernel width]
 * @param bias [filters]
 * @param layout what the runtime's kernel wants; x and the result are NHWC in any case
 * @returns [frames, H', W', filters]
 */
export function convolution(
  x: Float,
  weight: Float,
  bias: Float | null,
  layout: ConvolutionCall['spec']['layout'],
  { stride = 1, pads = [0, 0, 0, 0], group = 1 }: Conv2dOptions = {},
): Float {
  const size = (axis: number) => {
    const known = dim('convolution', weight, axis);
    return typeof known === 'number' ? known : reject('convolution', `${weight} has unknown sizes`);
  };
  const spec = {
    layout,
    inputs: size(1) * group,
    filters: size(0),
    kernel: [size(2), size(3)],
    stride,
    pads,
    group,
    bias: bias !== null,
  } as const;
  return x.graph.call({ operator: 'convolution', spec }, { x, weight, ...(bias && { bias }) });
}

/** The operators of a call. */
export function composeCall(call: Call, inputs: CallInputs): Float {
  const role = (name: string) => float(call, inputs, name);
  switch (call.operator) {
    case 'linear':
      return composeLinear(call, inputs);
    case 'attention':
      return composeAttention(call.spec, role);
    case 'convolution':
      return composeConvolution(call.spec, role);
  }
}

function composeLinear(call: LinearCall, inputs: CallInputs): Float {
  const { spec } = call;
  const role = (name: string) => float(call, inputs, name);
  const x = role('x');
  const bias = spec.bias ? role('bias') : null;
  const values = inputs.values as Value<'uint8'> | undefined;
  let y: Float;
  if (spec.bits === null) y = gemm(x, role('weight'), bias);
  else if (values) y = matMulBlocks(x, values, role('scales'), bias, spec.bits);
  else reject('linear', 'the input values is missing');
  if (spec.lora) y = add(y, gemm(gemm(x, role('down'), null), role('up'), null));
  if (spec.activation === 'gelu') y = geluTanh(y);
  if (spec.residual === 'gated') y = mul(y, role('gate'));
  return spec.residual === 'none' ? y : add(role('residual'), y);
}

function composeAttention(spec: AttentionCall['spec'], role: (name: string) => Float): Float {
  const [q, k, v] = [role('q'), role('k'), role('v')];
  const { heads, scale } = spec;
  if (q.rank === 3) {
    return multiHeadAttention(q, k, v, { heads, scale, ...(spec.bias && { bias: role('bias') }) });
  }
  // One wide head: ONNX Runtime's attention would fall to a kernel with hundreds of megabytes of
  // partial results (lib/gpu/README.md, "Attention").
  if (heads !== 1 || scale !== 1 || spec.bias) {
    reject('attention', 'rows without a leading axis have one head, no scale and no bias');
  }
  return matMul(softmax(gemm(q, k, null)), v);
}

function composeConvolution(spec: ConvolutionCall['spec'], role: (name: string) => Float): Float {
  const { layout, stride, pads, group } = spec;
  const [x, weight, bias] = [role('x'), role('weight'), spec.bias ? role('bias') : null];
  if (layout === 'nhwc') return conv2d(x, weight, bias, layout, { stride, pads, group });
  const channelsFirst = transpose(x, [0, 3, 1, 2]);
  const y = conv2d(channelsFirst, weight, bias, layout, { stride, pads, group });
  return transpose(y, [0, 2, 3, 1]);
}

function float({ operator }: Call, inputs: CallInputs, name: string): Float {
  const value = inputs[name];
  if (!value) reject(operator, `the input ${name} is missing`);
  if (value.dtype !== 'float32') reject(operator, `${value} must be float32`);
  return value as Float;
}

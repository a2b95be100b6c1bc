import type { Graph, Value } from './graph';

/*
 * The vocabulary of networks of images, which pass one frame after another. An image is [H, W, C]; in time, a causal
 * layer sees the frames that it was given before.
 */

/** A convolution. Its tensors are known by its name. */
export interface ConvolutionLayer {
  readonly name: string;
  /** C of the input. */
  readonly inputs: number;
  /** C of the result. */
  readonly filters: number;
  /** Width and height of the kernel. Odd ones pad with zeros. */
  readonly kernel: 1 | 2 | 3 | 7;
  readonly stride: 1 | 2;
  /** Whether a stride of 2 pads on all sides; on the right and below only where not. */
  readonly around: boolean;
  /** 2, 3: causal in time, over a frame and those before it; 1: the frame alone. */
  readonly taps: 1 | 2 | 3;
  readonly bias: boolean;
  /** Each channel of each frame has a filter of its own: the filters are those of the newest frame's, then those before. */
  readonly depthwise: boolean;
  /** Which share of the filters of this name. Parts of one name share their past: each frame goes through all of them. */
  readonly part: { readonly index: number; readonly of: number };
  /** Its weights, and its result where nothing is added to it, are stored in full precision. */
  readonly precise: boolean;
  /** The filters are no weights but means of neighbouring channels, {@link average}. */
  readonly average: AverageSpec | null;
}

/** AvgDown3D: which of the frames that become one a frame is. */
export interface AverageSpec {
  /** 0 for the earlier and 1 for the later of two frames; 0 for the only one. */
  readonly time: 0 | 1;
  /** Frames that become one. */
  readonly factorTime: 1 | 2;
}

/** DupUp3D: which of the copies of its channels a pixel takes. */
export interface RepeatSpec {
  /** 0 for the earlier and 1 for the later of the two frames that a frame becomes. */
  readonly time: 0 | 1;
  /** Frames that a frame becomes. */
  readonly factorTime: 1 | 2;
}

export type ImageCall =
  | { readonly op: 'convolution'; readonly layer: ConvolutionLayer }
  | { readonly op: 'channelNorm'; readonly name: string }
  | Activation
  | ({ readonly op: 'repeat' } & RepeatSpec)
  | { readonly op: 'pixelAttention' | 'upsample' | 'pixelShuffle' }
  | { readonly op: 'leakyRelu'; readonly slope: number }
  | { readonly op: 'sigmoid' | 'concat' }
  | { readonly op: 'channels'; readonly start: number; readonly end: number }
  | { readonly op: 'depthToSpace'; readonly block: number }
  | { readonly op: 'resize'; readonly scale: number }
  | { readonly op: 'warp'; readonly first: number };

/** What stands behind a convolution or a sum. */
export type Activation =
  | { readonly op: 'relu' | 'relu6' }
  | { readonly op: 'prelu'; readonly name: string };

/** Sizes of an image; they are always known. */
export function imageSize({ dims: [height, width, channels] }: Value) {
  if (typeof height !== 'number' || typeof width !== 'number' || typeof channels !== 'number') {
    throw new TypeError('an image has sizes that are known');
  }
  return { height, width, channels };
}

export type ConvolutionOptions = Partial<
  Pick<ConvolutionLayer, 'kernel' | 'stride' | 'around' | 'taps' | 'bias' | 'part' | 'precise'>
>;

/** A layer in one part, with nothing special. */
const plain = { around: false, part: { index: 0, of: 1 }, precise: false, average: null };

/**
 * A convolution, 3×3 over the frame alone unless the options say other.
 *
 * @param x [H, W, C]
 * @returns [H/stride, W/stride, filters]
 */
export function convolution(
  x: Value,
  name: string,
  filters: number,
  options: ConvolutionOptions = {},
): Value {
  const { kernel = 3, stride = 1, taps = 1, part = plain.part } = options;
  const { around = false, bias = true, precise = false } = options;
  const { channels: inputs } = imageSize(x);
  const shape = { name, inputs, filters, kernel, stride, around, taps, bias, depthwise: false };
  return append(x, { ...shape, part, precise, average: null });
}

/** As {@link convolution}, causal over three frames of a clip. */
export function causal(
  x: Value,
  name: string,
  filters: number,
  options: ConvolutionOptions = {},
): Value {
  return convolution(x, name, filters, { ...options, taps: 3 });
}

/**
 * A 3×3 filter for each channel of an image.
 *
 * @returns [H/stride, W/stride, C]
 */
export function depthwise(x: Value, name: string, stride: 1 | 2 = 1): Value {
  const { channels: inputs } = imageSize(x);
  const shape = { name, inputs, filters: inputs, kernel: 3, stride, taps: 1, bias: true } as const;
  return append(x, { ...shape, ...plain, depthwise: true });
}

/**
 * A 7×7 filter for each channel of a frame, and another for each of the frame before it.
 *
 * @returns [H, W, 2C], first what is of x
 */
export function depthwisePair(x: Value, name: string): Value {
  const { channels: inputs } = imageSize(x);
  const shape = { name, inputs, filters: 2 * inputs, kernel: 7, stride: 1, taps: 2 } as const;
  return append(x, { ...shape, ...plain, bias: false, depthwise: true });
}

/**
 * A frame's share of AvgDown3D: blocks of (time, row, column) are folded into channels in this order, and neighbouring
 * ones averaged. The shares of the frames that become one are to be added; before a clip's first frame, which becomes one
 * alone, stands a frame of zeros.
 *
 * @param factor by which height and width become smaller
 * @returns [H/factor, W/factor, filters]
 */
export function average(x: Value, filters: number, factor: 1 | 2, spec: AverageSpec): Value {
  const { channels: inputs } = imageSize(x);
  const { time, factorTime } = spec;
  const name = `mean of ${inputs} as ${filters}, ${factor}·${factor}·${factorTime}, ${time}`;
  const shape = { name, inputs, filters, kernel: factor, stride: factor } as const;
  const mean = { taps: 1, bias: false, depthwise: false, precise: true, average: spec } as const;
  return append(x, { ...plain, ...shape, ...mean });
}

function append(x: Value, layer: ConvolutionLayer): Value {
  const { height, width } = imageSize(x);
  const dims = [height / layer.stride, width / layer.stride, layer.filters];
  return x.graph.append({ op: 'convolution', layer }, [x], dims);
}

/** Sizes of the filters of each frame that a layer sees, as a file has them: [filters, channels, kernel, kernel]. */
export function filterDims({
  inputs,
  filters,
  kernel,
  taps,
  depthwise,
}: Pick<ConvolutionLayer, 'inputs' | 'filters' | 'kernel' | 'taps' | 'depthwise'>) {
  const [count, channels] = depthwise ? [filters / taps, 1] : [filters, inputs];
  return [count, channels, kernel, kernel] as const;
}

/** `x / max(‖x‖₂, 1e-12) · √C · γ` over the channels of each pixel; γ is bound as `name.gamma`. */
export function channelNorm(x: Value, name: string): Value {
  return x.graph.append({ op: 'channelNorm', name }, [x], x.dims);
}

/** `softmax(q·kᵀ/√C)·v` over all pixels of a frame, in one head: three times [H, W, C]. */
export function pixelAttention(q: Value, k: Value, v: Value): Value {
  return q.graph.append({ op: 'pixelAttention' }, [q, k, v], v.dims);
}

/** Nearest ×2, to be convolved: [2H, 2W, C]. */
export function upsample(x: Value): Value {
  const { height, width, channels } = imageSize(x);
  return x.graph.append({ op: 'upsample' }, [x], [2 * height, 2 * width, channels]);
}

/** `max(x, 0)` */
export function relu(x: Value): Value {
  return x.graph.append({ op: 'relu' }, [x], x.dims);
}

/** `min(max(x, 0), 6)` */
export function relu6(x: Value): Value {
  return x.graph.append({ op: 'relu6' }, [x], x.dims);
}

/** `max(x, 0) + a·min(x, 0)` with an a for each channel, bound as `slope` (He et al., arXiv:1502.01852). */
export function prelu(x: Value, name: string): Value {
  return x.graph.append({ op: 'prelu', name }, [x], x.dims);
}

/** Channels (c, row, column) become pixels of 2×2 blocks: [H, W, 4C] → [2H, 2W, C]. */
export function pixelShuffle(x: Value): Value {
  const { height, width, channels } = imageSize(x);
  return x.graph.append({ op: 'pixelShuffle' }, [x], [2 * height, 2 * width, channels / 4]);
}

/**
 * DupUp3D: channels are repeated and unfolded in the order (channel, time, row, column), to be added.
 *
 * @returns [2H, 2W, filters]
 */
export function repeat(x: Value, filters: number, spec: RepeatSpec): Value {
  const { height, width } = imageSize(x);
  return x.graph.append({ op: 'repeat', ...spec }, [x], [2 * height, 2 * width, filters]);
}

/** `max(x, 0) + slope·min(x, 0)` */
export function leakyRelu(x: Value, slope: number): Value {
  return x.graph.append({ op: 'leakyRelu', slope }, [x], x.dims);
}

/** `1 / (1 + exp(−x))` */
export function sigmoid(x: Value): Value {
  return x.graph.append({ op: 'sigmoid' }, [x], x.dims);
}

/** Channels of images of one size, one behind the other. */
export function concat(...images: readonly [Value, ...Value[]]): Value {
  const [{ graph, dims }] = images;
  const channels = images.reduce((sum, image) => sum + imageSize(image).channels, 0);
  return graph.append({ op: 'concat' }, images, [...dims.slice(0, 2), channels]);
}

/** Some channels of an image, from `start` to before `end`. */
export function channelsOf(x: Value, start: number, end: number): Value {
  return x.graph.append({ op: 'channels', start, end }, [x], [...x.dims.slice(0, 2), end - start]);
}

/** Channels (row, column, c) become pixels of blocks: [H, W, block²·C] → [block·H, block·W, C]. */
export function depthToSpace(x: Value, block: number): Value {
  const { height, width, channels } = imageSize(x);
  const dims = [block * height, block * width, channels / block ** 2];
  return x.graph.append({ op: 'depthToSpace', block }, [x], dims);
}

/** Linear between the centres of pixels, without antialiasing: [scale·H, scale·W, C]. */
export function resize(x: Value, scale: number): Value {
  const { height, width, channels } = imageSize(x);
  return x.graph.append({ op: 'resize', scale }, [x], [scale * height, scale * width, channels]);
}

/**
 * Pixel (row, column) is read so many columns and rows further, bilinear; beyond its edge an image goes on as it ends.
 *
 * @param flow its channels `first` and `first + 1` are these columns and rows
 */
export function warp(x: Value, flow: Value, first: number): Value {
  return x.graph.append({ op: 'warp', first }, [x, flow], x.dims);
}

/** Calls that are computed together; `value` is what they give. */
export type ImageMatch = ConvolutionMatch | AttentionMatch;

/** A convolution with what stands before and behind it. */
export interface ConvolutionMatch {
  readonly kind: 'convolution';
  readonly value: Value;
  readonly layer: ConvolutionLayer;
  /** The image that is read, before norm and upsampling. */
  readonly x: Value;
  /** Name of the norm before it, with SiLU. */
  readonly norm: string | null;
  readonly upsample: boolean;
  /** What is added to it. */
  readonly residual: ImageResidual | null;
  /** Of the sum. */
  readonly activation: Activation | null;
  /** Then four channels become four pixels. */
  readonly shuffle: boolean;
}

export type ImageResidual =
  | { readonly kind: 'same'; readonly side: Value }
  /** Through a 1×1 convolution. */
  | { readonly kind: 'linear'; readonly side: Value; readonly layer: ConvolutionLayer }
  | ({ readonly kind: 'repeated'; readonly side: Value } & RepeatSpec);

/** `x + W·softmax(q·kᵀ/√C)·v` of the normed x. */
export interface AttentionMatch {
  readonly kind: 'attention';
  readonly value: Value;
  readonly x: Value;
  readonly norm: string;
  /** q, k, v, and W. */
  readonly layers: readonly ConvolutionLayer[];
}

/** Images that a match reads. */
export function imagesOf(match: ImageMatch): readonly Value[] {
  if (match.kind === 'attention' || !match.residual) return [match.x];
  return [match.x, match.residual.side];
}

/** Under which key the weights of a match are; matches with one key have the same. */
export function weightsKey(match: ImageMatch): string {
  const { name, part } = match.kind === 'attention' ? (match.layers[0] ?? unknown()) : match.layer;
  return `${name} ${part.index}`;
}

function unknown(): never {
  throw new TypeError('an attention has layers');
}

/**
 * Covers the calls of a graph of images with matches, in an order of computation: from the last value to the first,
 * each takes the most that is computed together.
 *
 * @throws TypeError for a call that stands where nothing computes it
 */
export function matchImages(graph: Graph): ImageMatch[] {
  const uses = new Map<Value, number>();
  const results = [...graph.outputs.values()].map(({ value }) => value);
  for (const value of [...graph.values.flatMap(({ operands }) => operands), ...results]) {
    uses.set(value, (uses.get(value) ?? 0) + 1);
  }
  const absorbed = new Set<Value>();
  const single: Single = (value, op) => {
    if (!value || (op && value.call.op !== op) || uses.get(value) !== 1) return null;
    absorbed.add(value);
    return value;
  };
  const matches: ImageMatch[] = [];
  for (const value of graph.values.toReversed()) {
    if (absorbed.has(value) || value.call.op === 'input') continue;
    const match = attentionMatch(value, uses, absorbed) ?? convolutionMatch(value, single);
    if (!match)
      throw new TypeError(`${graph.name}: ${value.call.op} stands where it is not computed`);
    matches.push(match);
  }
  return matches.reverse();
}

/** A value, of this operation where one is named, that nothing else reads: it is computed where it is read. */
type Single = (value: Value | undefined, op?: Value['call']['op']) => Value | null;

function convolutionMatch(value: Value, single: Single): ConvolutionMatch | null {
  const shuffle = value.call.op === 'pixelShuffle';
  const active = shuffle ? single(value.operands[0]) : value;
  const call = active?.call;
  const isActivation = call?.op === 'relu' || call?.op === 'relu6' || call?.op === 'prelu';
  const activation = isActivation ? call : null;
  const sum = activation ? single(active?.operands[0]) : active;
  const [first, added] = sum?.operands ?? [];
  const main = sum?.call.op === 'add' ? single(first, 'convolution') : sum;
  if (main?.call.op !== 'convolution') return null;
  const residual = main === sum || !added ? null : residualOf(added, single);
  const [input] = main.operands;
  const large = single(input, 'upsample');
  const norm = single(single(input, 'silu')?.operands[0], 'channelNorm');
  const x = (large ?? norm)?.operands[0] ?? input;
  if (!x) return null;
  const name = norm?.call.op === 'channelNorm' ? norm.call.name : null;
  const { layer } = main.call;
  if (layer.around) return null;
  const around = { norm: name, upsample: !!large, residual, activation, shuffle };
  return { kind: 'convolution', value, layer, x, ...around };
}

function residualOf(added: Value, single: Single): ImageResidual {
  const [side] = added.operands;
  if (side && added.call.op === 'repeat' && single(added, 'repeat')) {
    const { time, factorTime } = added.call;
    return { kind: 'repeated', side, time, factorTime };
  }
  if (side && added.call.op === 'convolution') {
    const { layer } = added.call;
    const isLinear = layer.kernel === 1 && layer.taps === 1 && !layer.average;
    if (isLinear && single(added, 'convolution')) return { kind: 'linear', side, layer };
  }
  return { kind: 'same', side: added };
}

function attentionMatch(
  value: Value,
  uses: ReadonlyMap<Value, number>,
  absorbed: Set<Value>,
): AttentionMatch | null {
  const [x, outward] = value.operands;
  const [attended] = outward?.operands ?? [];
  if (value.call.op !== 'add' || !x || !outward || attended?.call.op !== 'pixelAttention') {
    return null;
  }
  const [norm] = attended.operands[0]?.operands ?? [];
  const layers = [...attended.operands, outward].flatMap(({ call, operands }) =>
    call.op === 'convolution' && (operands[0] === norm || operands[0] === attended)
      ? [call.layer]
      : [],
  );
  if (norm?.call.op !== 'channelNorm' || norm.operands[0] !== x || layers.length !== 4) return null;
  if (uses.get(norm) !== 3) return null;
  for (const part of [norm, ...attended.operands, attended, outward]) absorbed.add(part);
  return { kind: 'attention', value, x, norm: norm.call.name, layers };
}

/**
 * Floating-point operations of a graph, two for a multiplication with its addition, as it is computed: a 3×3
 * convolution behind a nearest ×2 is four of 2×2. Norms, activations and means are not counted.
 */
export function imageFlops(graph: Graph): number {
  const flops = graph.values.map((value) => {
    const { call, operands } = value;
    const { height, width, channels } = imageSize(value);
    if (call.op === 'pixelAttention') return 4 * (height * width) ** 2 * channels;
    if (call.op !== 'convolution' || call.layer.average) return 0;
    const { filters, taps, depthwise, inputs, kernel } = call.layer;
    const side = operands[0]?.call.op === 'upsample' ? 2 : kernel;
    const weights = depthwise ? filters : filters * inputs * taps;
    return 2 * height * width * weights * side ** 2;
  });
  return flops.reduce((sum, each) => sum + each, 0);
}

/**
 * DupUp3D for the four pixels of a 2×2 block: pixel (row, column) of output channel o is channel
 * `o·inputs/filters + pick` of the image that is repeated.
 */
export function repeatPicks({ layer, residual }: ConvolutionMatch): readonly number[] {
  if (residual?.kind !== 'repeated') return [0, 0, 0, 0];
  const { side, time, factorTime } = residual;
  const repeats = (layer.filters * factorTime * 4) / imageSize(side).channels;
  return [0, 1, 2, 3].map((phase) => Math.floor((time * 4 + phase) / repeats));
}

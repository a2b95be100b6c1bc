import { at } from '../../contract';
import { memoised } from '../../graph';
import {
  add,
  concat,
  conv2d,
  depthToSpace,
  type Graph,
  GraphBuilder,
  gridSample,
  leakyRelu,
  mul,
  reshape,
  resizeLinear,
  sigmoid,
  slice,
  sub,
  type Value,
} from '../../onnx';

/*
 * IFNet of RIFE 4.25 and 4.26 (README): the frame in the middle of two, in f32. Images are [1, C, H, W], I₀ and I₁ in
 * 0…1, H and W multiples of 64. A flow is [1, 4, H, W]: for each pixel of the middle, how many columns and rows further
 * it is found in I₀, then in I₁.
 *
 *   f_k = head(I_k)                                                        k = 0, 1
 *   Δflow, mask, kept = block_i(warp(I_k, flow), warp(f_k, flow), t, mask, kept; flow),  flow += Δflow     i = 0 … 4
 *   middle = σ(mask)·warp(I₀, flow) + (1 − σ(mask))·warp(I₁, flow)
 */

/** Sizes that a file's tensors tell. */
export interface RifeConfig {
  /** Of each block: 192, 128, 96, 64, 32. */
  readonly widths: readonly number[];
  /** Channels of the features of a frame: 4. */
  readonly features: number;
  /** Channels inside of the head: 16. */
  readonly head: number;
}

/** By how much each block sees its input smaller. The file does not tell. */
const scales = [16, 8, 4, 2, 1];

/** Sides have to be multiples: the first block sees 1/16 and halves it twice. */
export const sizeStep = 64;

/** Channels that a block hands on to the next one. */
export const keptChannels = 8;
/** What a block gives: flow, mask, and the kept ones. */
export const blockOutputs = 4 + 1 + keptChannels;
/** 3×3 convolutions with a shortcut in a block. */
export const residualLayers = 8;

/** Channels that block i sees: images, features, t; then mask, kept, and flow. */
export function blockInputs({ features }: RifeConfig, i: number): number {
  const frames = 2 * (3 + features) + 1;
  return i === 0 ? frames : frames + 1 + keptChannels + 4;
}

/** GridSample has a kernel on a GPU for operator sets 16 to 19 only. */
const opset = 19;

type Float = Value<'float32'>;

/**
 * Channels of x that a convolution is given. ONNX Runtime 1.30 computes wrong numbers on a GPU where they are 6, 9, 15 or
 * another multiple of 3 that is none of 4, but for 3: then one is given twice, the second time with weights of zero.
 */
export function paddedChannels(channels: number): number {
  return channels > 3 && channels % 3 === 0 && channels % 4 !== 0 ? channels + 1 : channels;
}

/** A 3×3 convolution. */
function conv(x: Float, name: string, filters: number, stride: 1 | 2 = 1): Float {
  const channels = Number(at(x.dims, 1));
  const padded = paddedChannels(channels);
  const input = padded === channels ? x : concat([x, slice(x, 1, 0, 1)], 1);
  const weight = x.graph.input(`${name}.weight`, 'float32', [filters, padded, 3, 3]);
  const bias = x.graph.input(`${name}.bias`, 'float32', [filters]);
  return conv2d(input, weight, bias, 'nchw', { stride, pads: [1, 1, 1, 1] });
}

const active = (x: Float) => leakyRelu(x, 0.2);

/** The features of a frame: image [1, 3, H, W] → features [1, F, H, W]. */
export const headGraph = memoised(({ head, features }: RifeConfig, h: number, w: number): Graph => {
  const g = new GraphBuilder('RIFE, head', opset);
  const image = g.input('image', 'float32', [1, 3, h, w]);
  let x = active(conv(image, 'cnn0', head, 2)); // [1, 16, H/2, W/2]
  x = active(conv(x, 'cnn1', head));
  x = active(conv(x, 'cnn2', head));
  g.output('features', depthToSpace(conv(x, 'cnn3', 4 * features), 2, 'nchw')); // [1, F, H, W]
  return g.build();
});

/** Where the pixels of a frame are read: columns and rows of `flow` from `first` on, as a grid [1, H, W, 2]. */
function gridOf(flow: Float, first: 0 | 2): Float {
  const { graph } = flow;
  const [, , h, w] = flow.dims.map(Number) as [number, number, number, number];
  const along = (channel: number, size: number, dims: readonly number[]) => {
    const places = Float32Array.from({ length: size }, (_, i) => (2 * i) / (size - 1) - 1);
    const shift = mul(slice(flow, 1, channel, channel + 1), graph.scalar(2 / (size - 1)));
    return reshape(add(shift, graph.constant('float32', dims, places)), [1, h, w, 1]);
  };
  return concat([along(first, w, [1, 1, 1, w]), along(first + 1, h, [1, 1, h, 1])], 3);
}

/**
 * Block i. Inputs: image0, image1, features0, features1, time, and for i > 0 flow, mask, kept; tensors of the file.
 * Outputs: flowNext, maskNext, keptNext.
 */
export const blockGraph = memoised((config: RifeConfig, i: number, h: number, w: number): Graph => {
  const [scale, width] = [at(scales, i), at(config.widths, i)];
  const g = new GraphBuilder(`RIFE, block ${i}`, opset);
  const input = (name: string, channels: number) => g.input(name, 'float32', [1, channels, h, w]);
  const images = [input('image0', 3), input('image1', 3)];
  const features = [input('features0', config.features), input('features1', config.features)];
  const time = input('time', 1);
  const flow = i === 0 ? null : input('flow', 4);
  const grids = flow ? [gridOf(flow, 0), gridOf(flow, 2)] : [];
  const warped = (pair: readonly Float[]) => pair.map((x, k) => warp(x, grids[k]));
  const before = flow ? [input('mask', 1), input('kept', keptChannels)] : [];

  const whole = concat([...warped(images), ...warped(features), time, ...before], 1); // [1, 15 or 24, H, W]
  let x = resized(whole, 1 / scale); // [1, …, H/s, W/s]
  if (flow) x = concat([x, mul(resized(flow, 1 / scale), g.scalar(1 / scale))], 1); // [1, 28, H/s, W/s]
  x = active(conv(x, 'conv0.0', width / 2, 2)); // [1, C/2, H/2s, W/2s]
  x = active(conv(x, 'conv0.1', width, 2)); // [1, C, H/4s, W/4s]
  for (let layer = 0; layer < residualLayers; layer++) {
    x = active(add(conv(x, `convblock.${layer}`, width), x));
  }
  const folded = conv(x, 'lastconv', 16 * blockOutputs); // [1, 16·13, H/4s, W/4s]
  const y = resized(depthToSpace(folded, 4, 'nchw'), scale); // [1, 13, H, W]
  const change = mul(slice(y, 1, 0, 4), g.scalar(scale)); // [1, 4, H, W]
  g.output('flowNext', flow ? add(flow, change) : change);
  g.output('maskNext', slice(y, 1, 4, 5));
  g.output('keptNext', slice(y, 1, 5, blockOutputs));
  return g.build();
});

const warp = (x: Float, grid: Float | undefined) => (grid ? gridSample(x, grid) : x);
const resized = (x: Float, scale: number) => (scale === 1 ? x : resizeLinear(x, scale));

/** Inputs: image0, image1, flow, mask. Output: middle [1, 3, H, W]. */
export const blendGraph = memoised((h: number, w: number): Graph => {
  const g = new GraphBuilder('RIFE, blend', opset);
  const input = (name: string, channels: number) => g.input(name, 'float32', [1, channels, h, w]);
  const flow = input('flow', 4);
  const first = warp(input('image0', 3), gridOf(flow, 0)); // [1, 3, H, W]
  const second = warp(input('image1', 3), gridOf(flow, 2)); // [1, 3, H, W]
  const share = sigmoid(input('mask', 1)); // [1, 1, H, W]
  g.output('middle', add(second, mul(share, sub(first, second))));
  return g.build();
});

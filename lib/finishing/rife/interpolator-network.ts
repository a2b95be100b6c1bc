import { at } from '../../contract';
import {
  add,
  channelsOf,
  concat,
  convolution,
  depthToSpace,
  Graph,
  imageSize,
  leakyRelu,
  memoised,
  mul,
  resize,
  sigmoid,
  sub,
  type Value,
  warp,
  weightedSum,
} from '../../graph';

/*
 * IFNet of RIFE 4.25 and 4.26 (README): the frame in the middle of two, in f32. Images are [H, W, C], I₀ and I₁ in
 * 0…1, H and W multiples of 64. A flow is [H, W, 4]: for each pixel of the middle, how many columns and rows further
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

/**
 * Channels of x that a convolution is given. ONNX Runtime 1.30 computes wrong numbers on a GPU where they are 6, 9, 15 or
 * another multiple of 3 that is none of 4, but for 3: then one is given twice, the second time with weights of zero.
 */
export function paddedChannels(channels: number): number {
  return channels > 3 && channels % 3 === 0 && channels % 4 !== 0 ? channels + 1 : channels;
}

/** A 3×3 convolution. */
function conv(x: Value, name: string, filters: number, stride: 1 | 2 = 1): Value {
  const { channels } = imageSize(x);
  const input = paddedChannels(channels) === channels ? x : concat(x, channelsOf(x, 0, 1));
  return convolution(input, name, filters, { stride, around: true });
}

const active = (x: Value) => leakyRelu(x, 0.2);

/** The features of a frame: image [H, W, 3] → features [H, W, F]. */
export const headGraph = memoised(({ head, features }: RifeConfig, h: number, w: number): Graph => {
  const g = new Graph('RIFE, head');
  let x = active(conv(g.input('image', [h, w, 3]), 'cnn0', head, 2)); // [H/2, W/2, 16]
  x = active(conv(x, 'cnn1', head));
  x = active(conv(x, 'cnn2', head));
  g.output('features', depthToSpace(conv(x, 'cnn3', 4 * features), 2)); // [H, W, F]
  return g;
});

/**
 * Block i. Inputs: image0, image1, features0, features1, time, and for i > 0 flow, mask, kept; tensors of the file.
 * Outputs: flowNext, maskNext, keptNext.
 */
export const blockGraph = memoised((config: RifeConfig, i: number, h: number, w: number): Graph => {
  const [scale, width] = [at(scales, i), at(config.widths, i)];
  const g = new Graph(`RIFE, block ${i}`);
  const input = (name: string, channels: number) => g.input(name, [h, w, channels]);
  const images = [input('image0', 3), input('image1', 3)] as const;
  const features = [input('features0', config.features), input('features1', config.features)];
  const time = input('time', 1);
  const flow = i === 0 ? null : input('flow', 4);
  const warped = (x: Value, k: number) => (flow ? warp(x, flow, 2 * k) : x);
  const before = flow ? [input('mask', 1), input('kept', keptChannels)] : [];

  const [first, second] = images;
  const others = [warped(second, 1), ...features.map(warped), time, ...before];
  let x = resized(concat(warped(first, 0), ...others), 1 / scale); // [H/s, W/s, 15 or 24]
  if (flow) x = concat(x, weightedSum([1 / scale, resized(flow, 1 / scale)])); // [H/s, W/s, 28]
  x = active(conv(x, 'conv0.0', width / 2, 2)); // [H/2s, W/2s, C/2]
  x = active(conv(x, 'conv0.1', width, 2)); // [H/4s, W/4s, C]
  for (let layer = 0; layer < residualLayers; layer++) {
    x = active(add(conv(x, `convblock.${layer}`, width), x));
  }
  const folded = conv(x, 'lastconv', 16 * blockOutputs); // [H/4s, W/4s, 16·13]
  const y = resized(depthToSpace(folded, 4), scale); // [H, W, 13]
  const change = weightedSum([scale, channelsOf(y, 0, 4)]); // [H, W, 4]
  g.output('flowNext', flow ? add(flow, change) : change);
  g.output('maskNext', channelsOf(y, 4, 5));
  g.output('keptNext', channelsOf(y, 5, blockOutputs));
  return g;
});

const resized = (x: Value, scale: number) => (scale === 1 ? x : resize(x, scale));

/** Inputs: image0, image1, flow, mask. Output: middle [H, W, 3]. */
export const blendGraph = memoised((h: number, w: number): Graph => {
  const g = new Graph('RIFE, blend');
  const flow = g.input('flow', [h, w, 4]);
  const first = warp(g.input('image0', [h, w, 3]), flow, 0); // [H, W, 3]
  const second = warp(g.input('image1', [h, w, 3]), flow, 2); // [H, W, 3]
  const share = sigmoid(g.input('mask', [h, w, 1])); // [H, W, 1]
  g.output('middle', add(second, mul(sub(first, second), concat(share, share, share))));
  return g;
});

import { at } from '../../../contract';
import {
  add,
  average,
  causal,
  channelNorm,
  convolution,
  Graph,
  imageSize,
  memoised,
  pixelAttention,
  repeat,
  silu,
  upsample,
  type Value,
} from '../../../graph';
import { decoderBlocks, encoderBlocks, type VaeBlock, type VaeConfig } from '../config-schemas';

/*
 * The VAE's equations, each once. Images are [H, W, C]; h and w are sizes of the latents, z their channels. In time,
 * layers are causal: the decoder's are given a clip's frames one after another.
 */

/** How a network sees the time: the frames before, or the newest tap only, as for a first frame, whose past is zero. */
type Taps = 1 | 3;

const activated = (x: Value, norm: string): Value => silu(channelNorm(x, norm));

/** A 1×1 convolution of single frames. */
const pointwise = (x: Value, name: string, filters: number): Value =>
  convolution(x, name, filters, { kernel: 1 });

/** `x + conv₂(silu(norm₂(conv₁(silu(norm₁(x))))))`, x through a 1×1 convolution where the channels change. */
function residualBlock(x: Value, name: string, filters: number, taps: Taps): Value {
  const hidden = convolution(activated(x, `${name}.norm1`), `${name}.conv1`, filters, { taps }); // [H, W, filters]
  const main = convolution(activated(hidden, `${name}.norm2`), `${name}.conv2`, filters, { taps }); // [H, W, filters]
  const keepsChannels = x.dims[2] === filters;
  return add(main, keepsChannels ? x : pointwise(x, `${name}.conv_shortcut`, filters)); // [H, W, filters]
}

/** `x + W·softmax(q·kᵀ/√C)·v` of the normed x, over the pixels of a frame. */
function attention(x: Value, name: string, channels: number): Value {
  const y = channelNorm(x, `${name}.norm`); // [H, W, C]
  const project = (index: number) =>
    convolution(y, `${name}.to_qkv`, channels, { kernel: 1, part: { index, of: 3 } });
  const [q, k, v] = [project(0), project(1), project(2)]; // [H, W, C] each
  return add(x, pointwise(pixelAttention(q, k, v), `${name}.proj`, channels)); // [H, W, C]
}

/** The parts of the middle block, each [H, W, C] → [H, W, C]. */
const middleParts = (name: string, channels: number, taps: Taps) =>
  [
    (x: Value) => residualBlock(x, `${name}.resnets.0`, channels, taps),
    (x: Value) => attention(x, `${name}.attentions.0`, channels),
    (x: Value) => residualBlock(x, `${name}.resnets.1`, channels, taps),
  ] as const;

/** `conv_in(post_quant_conv(z))`, [h, w, z] → [h, w, C]. */
function quantised(z: Value, { z_dim }: VaeConfig, channels: number): Value {
  const x = convolution(z, 'post_quant_conv', z_dim, { kernel: 1, precise: true }); // [h, w, z]
  return causal(x, 'decoder.conv_in', channels, { precise: true }); // [h, w, C]
}

/** Nearest ×2 and a convolution, plus the level's input, repeated, where it has shortcuts: [H, W, C] → [2H, 2W, C′]. */
function grow(
  x: Value,
  input: Value,
  { resampler, next_dim, time, shortcut }: VaeBlock,
  frame: 0 | 1,
): Value {
  const large = convolution(upsample(x), `${resampler}.resample.1`, next_dim); // [2H, 2W, C′]
  if (!shortcut) return large;
  return add(large, repeat(input, next_dim, { time: frame, factorTime: time ? 2 : 1 })); // [2H, 2W, C′]
}

/** One of the two frames that a frame becomes: half of a causal convolution over time, C → 2C. */
function timeConvolution(x: Value, { resampler, out_dim }: VaeBlock, frame: 0 | 1): Value {
  const options = { kernel: 1, part: { index: frame, of: 2 } } as const;
  return causal(x, `${resampler}.time_conv`, out_dim, options); // [H, W, C]
}

/**
 * The decoder's levels from `index` on, depth first: of two frames that a frame becomes, the first leaves before the
 * second one is begun. The first frame of a clip becomes one frame: it skips the time convolutions, whose past then
 * starts empty with the second one, and has the later half of the shortcut.
 */
function levels(g: Graph, config: VaeConfig, index: number, input: Value, first: boolean): void {
  const block = decoderBlocks(config)[index];
  if (!block) {
    const y = causal(
      activated(input, 'decoder.norm_out'),
      'decoder.conv_out',
      config.out_channels,
      {
        precise: true,
      },
    ); // [H, W, 3·p²]
    g.output(`frame ${g.outputs.size}`, y);
    return;
  }
  let x = input;
  for (const name of block.resnets) x = residualBlock(x, name, block.out_dim, 3); // [H, W, C]
  grown(g, config, index, x, input, first);
}

/** {@link levels} behind the residual blocks of the level `index`, of which `x` is the result and `input` the input. */
function grown(
  g: Graph,
  config: VaeConfig,
  index: number,
  x: Value,
  input: Value,
  first: boolean,
): void {
  const block = at(decoderBlocks(config), index);
  const { space, time } = block;
  if (!space) levels(g, config, index + 1, x, first);
  else if (!time || first) {
    levels(g, config, index + 1, grow(x, input, block, time ? 1 : 0), first);
  } else {
    for (const frame of [0, 1] as const) {
      const y = timeConvolution(x, block, frame); // [H, W, C]
      levels(g, config, index + 1, grow(y, input, block, frame), first);
    }
  }
}

/**
 * The decoder for one latent frame.
 *
 * Input: latent [h, w, z] in the VAE's space. Outputs: frames [16h/p, 16w/p, 3·p²], p×p pixels folded into channels;
 * one of the first latent frame, and as many as the time grows by of each later one.
 *
 * @param first whether it is the clip's first
 */
export const decoderFrame = memoised(
  (config: VaeConfig, h: number, w: number, first: boolean): Graph => {
    const g = new Graph('vae decoder');
    const { in_dim: top } = at(decoderBlocks(config), 0);
    let x = quantised(g.input('latent', [h, w, config.z_dim]), config, top); // [h, w, C]
    for (const part of middleParts('decoder.mid_block', top, 3)) x = part(x); // [h, w, C]
    levels(g, config, 0, x, first);
    return g;
  },
);

/**
 * The part of {@link decoderFrame} that sees tiles: all behind the first level's residual blocks.
 *
 * Inputs: main [h, w, C], their result, and with shortcuts middle [h, w, C₀], their input.
 */
export const decoderTile = memoised(
  (config: VaeConfig, h: number, w: number, first: boolean): Graph => {
    const g = new Graph('vae decoder tile');
    const { in_dim, out_dim, shortcut } = at(decoderBlocks(config), 0);
    const main = g.input('main', [h, w, out_dim]);
    const middle = shortcut ? g.input('middle', [h, w, in_dim]) : main;
    grown(g, config, 0, main, middle, first);
    return g;
  },
);

/**
 * What is before {@link decoderTile}, a graph for each group of layers: first those whose result is its `middle`, then
 * those that make `main` of it.
 *
 * Input: x [h, w, C]. Output: y [h, w, C′].
 */
export const latentGraphs = memoised((config: VaeConfig, h: number, w: number) => {
  const { in_dim: top, out_dim, resnets } = at(decoderBlocks(config), 0);
  const graphOf = (inputs: number) => (part: (x: Value) => Value, index: number) => {
    const g = new Graph(`vae latent part ${index}`);
    g.output('y', part(g.input('x', [h, w, index === 0 ? inputs : out_dim])));
    return g;
  };
  const first = [(x: Value) => quantised(x, config, top)].map(graphOf(config.z_dim));
  const middle = middleParts('decoder.mid_block', top, 3).map((part) => graphOf(top)(part, 0));
  const blocks = resnets.map((name) => (x: Value) => residualBlock(x, name, out_dim, 3));
  return { middle: [...first, ...middle], main: blocks.map(graphOf(top)) };
});

/**
 * A level of the encoder, depth first, for frames that follow one another: those that a clip begins with, one, or those
 * of a later latent frame. Where the level halves the time, the later one of two frames is what both become; the clip's
 * first frame stays as it is.
 *
 * @param frames [H, W, C] each
 * @param taps 1 where nothing comes behind the first frame
 * @returns [H/2, W/2, C′] each
 */
function* encoderLevel(
  frames: Iterable<Value>,
  { resnets, resampler, out_dim, space, time, shortcut }: VaeBlock,
  taps: Taps,
  first: boolean,
): Generator<Value> {
  const [factor, factorTime] = [space ? 2 : 1, time ? 2 : 1] as const;
  let earlier: Value | null = null;
  for (const input of frames) {
    let x = input;
    for (const name of resnets) x = residualBlock(x, name, out_dim, taps); // [H, W, C′]
    if (space) x = convolution(x, `${resampler}.resample.1`, out_dim, { stride: 2 }); // [H/2, W/2, C′]
    if (time && taps === 3) {
      const halved = causal(x, `${resampler}.time_conv`, out_dim, { kernel: 1 }); // [H/2, W/2, C′]
      if (!first) x = halved;
    }
    if (time && !first && !earlier) {
      earlier = input;
      continue;
    }
    // Around the level goes the mean of its input.
    if (shortcut && earlier) x = add(average(earlier, out_dim, factor, { time: 0, factorTime }), x);
    if (shortcut) x = add(average(input, out_dim, factor, { time: time ? 1 : 0, factorTime }), x);
    earlier = null;
    yield x; // [H/2, W/2, C′]
  }
}

/**
 * The encoder for the first frame of a clip.
 *
 * Input: image [16h/p, 16w/p, 3·p²], p×p pixels folded into channels. Output: mean [h, w, z] in the VAE's space.
 */
export const encoderFrame = memoised((config: VaeConfig, h: number, w: number): Graph => {
  const g = new Graph('vae encoder');
  const { in_channels, base_dim, patch_size: p, scale_factor_spatial: scale, z_dim } = config;
  const image = g.input('image', [(h * scale) / p, (w * scale) / p, in_channels]);
  let frames: Iterable<Value> = [convolution(image, 'encoder.conv_in', base_dim)]; // [H, W, C]
  for (const block of encoderBlocks(config)) frames = encoderLevel(frames, block, 1, true);
  for (const x of frames) g.output('mean', meanOf(x, z_dim, 1)); // [h, w, z]
  return g;
});

/** The layers behind the encoder's levels: [h, w, C] → [h, w, z]. */
function meanOf(features: Value, z: number, taps: Taps): Value {
  let x = features;
  const { channels } = imageSize(features);
  for (const part of middleParts('encoder.mid_block', channels, taps)) x = part(x); // [h, w, C]
  const y = activated(x, 'encoder.norm_out'); // [h, w, C]
  const moments = convolution(y, 'encoder.conv_out', 2 * z, { taps }); // [h, w, 2z]
  // Only the mean is used, not the logarithm of the variance.
  return convolution(moments, 'quant_conv', z, { kernel: 1, part: { index: 0, of: 2 } }); // [h, w, z]
}

/** Channels of the pixels that the encoder for clips reads: kernels take four at a time, so that some may be zero. */
export const pixelChannels = ({ in_channels }: VaeConfig): number => 4 * Math.ceil(in_channels / 4);

/** A level of the encoder for clips; the last one has what is behind the levels, too. */
export interface EncoderPart {
  /** Of the clip's first frame, and of the frames of each further latent frame. */
  readonly graphs: readonly [first: Graph, later: Graph];
  /** A result depends on its own frame and so many before it. */
  readonly reach: number;
}

/**
 * The encoder for clips.
 *
 * Inputs of a part: `frame 0`, … [H, W, C], in the first one p×p pixels folded into channels. Outputs: frames
 * [H/2, W/2, C′], half as many where a level halves the time; of the last part the mean [h, w, z] in the VAE's space.
 */
export const encoderParts = memoised((config: VaeConfig, h: number, w: number): EncoderPart[] => {
  const blocks = encoderBlocks(config);
  const scale = config.scale_factor_spatial / config.patch_size;
  let [height, width] = [h * scale, w * scale];
  let frames = config.scale_factor_temporal;
  return blocks.map((block, index) => {
    const ends = index === blocks.length - 1;
    const part = (count: number, first: boolean) => {
      const g = new Graph(`vae encoder of clips, ${block.name}`);
      function* inputs() {
        for (let f = 0; f < count; f++) {
          const channels = index === 0 ? pixelChannels(config) : block.in_dim;
          const x = g.input(`frame ${f}`, [height, width, channels]);
          yield index === 0 ? causal(x, 'encoder.conv_in', config.base_dim) : x; // [H, W, C]
        }
      }
      for (const x of encoderLevel(inputs(), block, 3, first)) {
        if (ends)
          g.output('mean', meanOf(x, config.z_dim, 3)); // [h, w, z]
        else g.output(`frame ${g.outputs.size}`, x); // [H/2, W/2, C′]
      }
      return g;
    };
    const graphs = [part(1, true), part(frames, false)] as const;
    // Each causal convolution sees two frames more; the one that halves the time steps over one.
    const convolutions = 2 * block.resnets.length + (index === 0 ? 1 : 0) + (ends ? 5 : 0);
    if (block.space) [height, width] = [height / 2, width / 2];
    if (block.time) frames /= 2;
    return { graphs, reach: 2 * convolutions + (block.time ? 2 : 0) };
  });
});

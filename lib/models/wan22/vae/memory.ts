import { decoderBlocks, encoderBlocks, type VaeConfig } from '../config';
import { type TensorShapes, vaeTensors } from '../tensors';
import { defaultBandBytes } from './bands';
import { joinsTaps } from './graphs';
import { bytesOf, type Dims, type VaeMemory, Walk } from './memory-walk';
import { type Tiling, tileSize } from './tiles';

export type { VaeMemory };

interface Weights {
  readonly weights: number;
  readonly largestWeight: number;
}

/**
 * Bytes of a decoder's or encoder's tensors as `weights.ts` holds them, and of the largest.
 *
 * @param taps time taps of a causal kernel that are held; the encoder needs one
 */
function tensorBytes(
  shapes: TensorShapes,
  belongs: (name: string) => boolean,
  taps: 1 | 3 = 3,
): Weights {
  let [weights, largestWeight] = [0, 0];
  for (const [name, shape] of shapes) {
    if (!belongs(name)) continue;
    const [filters = 0, , depth] = shape;
    const parts = name.includes('time_conv') ? 2 : 1;
    const causal = shape.length === 5 && depth === 3;
    const joined = causal && taps === 3 && joinsTaps(filters / parts);
    // The 3×3 kernel behind a nearest ×2 is held as four of 2×2.
    const phases = name.endsWith('upsampler.resample.1.weight') ? 4 : 1;
    const held = phases === 4 ? (bytesOf(shape) * 16) / 9 : bytesOf(shape);
    const one = causal ? (held * taps) / 3 : held;
    weights += one;
    // Joined taps have a bias for each tap.
    if (joined) weights += 2 * 4 * filters;
    const pieces = phases * parts * (causal && !joined ? taps : 1);
    largestWeight = Math.max(largestWeight, one / pieces);
  }
  return { weights, largestWeight };
}

/**
 * Device memory of the streaming decoder, all weights in f32. The runtime's part assumes its
 * exact-size pool, which keeps what it once took.
 */
export function vaeDecoderMemory(
  config: VaeConfig,
  latentHeight: number,
  latentWidth: number,
  bandBytes: number = defaultBandBytes,
): VaeMemory {
  const walk = new Walk(bandBytes);
  const { z_dim: z } = config;
  const latent: Dims = [latentHeight, latentWidth, z];
  // The uploaded latent is no part of the pool, but there all the time.
  walk.take([...latent, 1]);
  let x = convolutionIn(walk, config, latent);
  x = walk.middle(x, true);
  for (const [index, block] of decoderBlocks(config).entries()) {
    const input = x;
    for (let i = 0; i < block.resnets; i++) {
      x = walk.residualBlock(x, block.out_dim, true, i === 0 && block.space);
    }
    x = growth(walk, config, index, x, input);
  }
  convolutionOut(walk, config, x);
  const decoding = (name: string) =>
    name.startsWith('decoder.') || name.startsWith('post_quant_conv.');
  return walk.result(tensorBytes(vaeTensors(config), decoding));
}

/** post_quant_conv and conv_in; the latent is not given back. */
function convolutionIn(walk: Walk, config: VaeConfig, latent: Dims): Dims {
  const { z_dim: z } = config;
  const pointwise = { inputs: z, filters: z, kernel: 1, causal: false, norm: false } as const;
  const quantised = walk.convolution(latent, pointwise);
  const filters = decoderBlocks(config)[0]?.in_dim ?? 0;
  const x = walk.convolution(quantised, { inputs: z, filters, causal: true, norm: false });
  walk.give(quantised);
  return x;
}

/** The end of a level, where frames grow. */
function growth(walk: Walk, config: VaeConfig, level: number, x: Dims, input: Dims): Dims {
  const block = decoderBlocks(config)[level];
  if (!block?.space) return x;
  // While a frame passes the later levels, these two wait for the block's second frame.
  let frame = x;
  if (block.time) {
    const shape = { inputs: block.out_dim, filters: block.out_dim, causal: true, norm: false };
    frame = walk.convolution(x, { ...shape, kernel: 1 });
    walk.give(frame);
    frame = walk.convolution(x, { ...shape, kernel: 1 });
  }
  const y = walk.upsample(frame, block.in_dim);
  if (block.time) walk.give(frame);
  else walk.give(x, input);
  return y;
}

function convolutionOut(walk: Walk, config: VaeConfig, x: Dims): void {
  const shape = { inputs: x[2], filters: config.out_channels, causal: true, norm: true };
  walk.read(walk.convolution(x, shape));
}

/**
 * Peak of a tiled decode, as `TiledVaeDecoder` does it: the larger of its two parts, layers on whole
 * frames of latent size one by one, and the up blocks on a tile.
 */
export function tiledDecoderMemory(
  config: VaeConfig,
  latentHeight: number,
  latentWidth: number,
  tiling: Tiling,
  bandBytes: number = defaultBandBytes,
): VaeMemory {
  const latentPart = latentPartMemory(config, latentHeight, latentWidth, bandBytes);
  const tile = tileSize(latentHeight, latentWidth, tiling);
  const tiles = tileMemory(config, tile.latentHeight, tile.latentWidth, bandBytes);
  return latentPart.total > tiles.total ? latentPart : tiles;
}

/** `runLatentPart`: images are shared by the layers, weights and partial sums go with each. */
export function latentPartMemory(
  config: VaeConfig,
  latentHeight: number,
  latentWidth: number,
  bandBytes: number = defaultBandBytes,
): VaeMemory {
  const walk = new Walk(bandBytes);
  const latent: Dims = [latentHeight, latentWidth, config.z_dim];
  const [first] = decoderBlocks(config);
  const { in_dim: top = 0, out_dim: channels = 0, resnets = 0, name = '' } = first ?? {};
  walk.take(latent);
  let x = convolutionIn(walk, config, latent);
  walk.give(latent);
  walk.read(x);
  walk.forget();
  const middle = 'decoder.mid_block';
  const layers = [
    `${middle}.resnets.0`,
    `${middle}.attentions.0`,
    `${middle}.resnets.1`,
    ...Array.from({ length: resnets }, (_, i) => `${name}.resnets.${i}`),
  ];
  for (const layer of layers) {
    if (layer.includes('attentions')) {
      const y = walk.attention(x);
      walk.give(x);
      x = y;
    } else x = walk.residualBlock(x, layer.startsWith(middle) ? top : channels, true, false);
    walk.forget();
  }
  const shapes = vaeTensors(config);
  const weights = ['post_quant_conv', ...layers].map((layer) =>
    tensorBytes(
      shapes,
      (tensor) =>
        tensor.startsWith(`${layer}.`) ||
        (layer === 'post_quant_conv' && tensor.startsWith('decoder.conv_in.')),
    ),
  );
  return walk.result({
    weights: Math.max(...weights.map((layer) => layer.weights)),
    largestWeight: Math.max(...weights.map((layer) => layer.largestWeight)),
  });
}

/** The up blocks without the first one's residual blocks. */
export function tileMemory(
  config: VaeConfig,
  tileHeight: number,
  tileWidth: number,
  bandBytes: number = defaultBandBytes,
): VaeMemory {
  const walk = new Walk(bandBytes);
  const [first, ...blocks] = decoderBlocks(config);
  let x: Dims = [tileHeight, tileWidth, first?.out_dim ?? 0];
  const middle: Dims = [tileHeight, tileWidth, first?.in_dim ?? 0];
  walk.take(x, middle);
  x = growth(walk, config, 0, x, middle);
  for (const [index, block] of blocks.entries()) {
    const input = x;
    for (let i = 0; i < block.resnets; i++) {
      x = walk.residualBlock(x, block.out_dim, true, i === 0 && block.space);
    }
    x = growth(walk, config, index + 1, x, input);
  }
  convolutionOut(walk, config, x);
  const inTiles = (tensor: string) =>
    tensor.startsWith('decoder.') &&
    !tensor.startsWith('decoder.conv_in.') &&
    !tensor.startsWith('decoder.mid_block.') &&
    !tensor.startsWith(`${first?.name}.resnets.`);
  return walk.result(tensorBytes(vaeTensors(config), inTiles));
}

/** Device memory of the first-frame encoder, which holds the weights of one part at a time. */
export function vaeEncoderMemory(
  config: VaeConfig,
  latentHeight: number,
  latentWidth: number,
  bandBytes: number = defaultBandBytes,
): VaeMemory {
  const walk = new Walk(bandBytes);
  const { z_dim: z, in_channels: inputs, base_dim: base } = config;
  const scale = config.scale_factor_spatial / config.patch_size;
  const image: Dims = [latentHeight * scale, latentWidth * scale, inputs];
  const once = { causal: false, norm: false };
  walk.take(image);
  let x = walk.convolution(image, { ...once, inputs, filters: base });
  walk.give(image);
  const blocks = encoderBlocks(config);
  for (const block of blocks) {
    const input = x;
    for (let i = 0; i < block.resnets; i++) {
      x = walk.residualBlock(x, block.out_dim, false, i === 0);
    }
    const y = walk.downsample(x, block.in_dim, block.space);
    walk.give(x, input);
    x = y;
  }
  x = walk.middle(x, false);
  const top = x[2];
  const moments = walk.convolution(x, { inputs: top, filters: 2 * z, causal: false, norm: true });
  walk.give(x);
  walk.read(walk.convolution(moments, { ...once, inputs: 2 * z, filters: z, kernel: 1 }));
  // The middle is the part with the most weights; of a 3×3×3 kernel one time tap is held.
  const inMiddle = (name: string) => name.startsWith('encoder.mid_block.');
  return walk.result(tensorBytes(vaeTensors(config), inMiddle, 1));
}

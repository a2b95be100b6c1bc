/*
 * Floating-point operations of each stage, two for a multiplication with its addition. Norms, activations and softmax are not counted.
 */
import { at } from '../../../contract';
import { elementCount } from '../../../gpu';
import type { LatentSize } from '../../../pipeline/latents';
import type { TensorShapes } from '../../layers/tensors';
import type { TextEncoderConfig } from '../../umt5/config';
import {
  decoderBlocks,
  type TransformerConfig,
  transformerDim,
  type VaeBlock,
  type VaeConfig,
} from '../config';
import { tinyDecoderKeys } from '../tiny-decoder/keys';

/** By graph: what one block of the transformer does for S tokens and a text of T rows. */
export function transformerBlockFlops(config: TransformerConfig, tokens: number, text: number) {
  const d = transformerDim(config);
  const linear = 2 * tokens * d * d;
  return {
    'self-attention': 4 * linear + 4 * tokens * tokens * d,
    'cross-attention-feed-forward':
      4 * text * d * d + 2 * linear + 4 * tokens * text * d + 4 * tokens * d * config.ffn_dim,
  };
}

/** One pass of the transformer's blocks over a clip. */
export function passFlops(config: TransformerConfig, tokens: number, text: number): number {
  const block = Object.values(transformerBlockFlops(config, tokens, text));
  return config.num_layers * block.reduce((sum, flop) => sum + flop, 0);
}

/** One layer of the text encoder on L tokens: q, k, v, o; gate, up and down; attention. */
export function encoderLayerFlops(config: TextEncoderConfig, tokens: number): number {
  const { d_model: d, d_ff, num_heads, d_kv } = config;
  const inner = num_heads * d_kv;
  return 2 * tokens * (4 * d * inner + 3 * d * d_ff) + 4 * tokens * tokens * inner;
}

/**
 * One level of the VAE's decoder for one latent position and one frame that enters it, as the
 * engine computes it: the 3×3 convolution behind a nearest ×2 is four of 2×2 (`vae/README.md`).
 */
export function upBlockFlops(block: VaeBlock, positions: number): number {
  const { in_dim: inputs, out_dim: filters, resnets, space, time } = block;
  let perPixel = 0;
  for (let i = 0; i < resnets; i++) {
    const from = i === 0 ? inputs : filters;
    perPixel += 2 * 27 * (from * filters + filters * filters);
    if (from !== filters) perPixel += 2 * from * filters;
  }
  const frames = time ? 2 : 1;
  if (time) perPixel += 2 * 3 * filters * 2 * filters;
  if (space) perPixel += frames * 4 * 2 * 4 * filters * filters;
  return perPixel * positions;
}

/** All levels of the VAE's decoder for a clip, with what is around them: 1×1, first and last convolution, middle. */
export function decoderFlops(config: VaeConfig, { frames, height, width }: LatentSize): number {
  const blocks = decoderBlocks(config);
  const pixels = height * width;
  const { in_dim: top } = at(blocks, 0);
  const { z_dim: z, out_channels: outputs } = config;
  const convolutions = 2 * 27 * (z * top + 4 * top * top) + 2 * z * z;
  const attention = 2 * 4 * top * top + 4 * pixels * top;
  let total = frames * pixels * (convolutions + attention);
  let [entering, positions] = [frames, pixels];
  for (const block of blocks) {
    total += entering * upBlockFlops(block, positions);
    // The first frame of a clip stays one.
    if (block.time) entering = 2 * entering - 1;
    if (block.space) positions *= 4;
  }
  const { out_dim: last } = at(blocks, blocks.length - 1);
  return total + entering * positions * 2 * 27 * last * outputs;
}

/**
 * A tiny decoder for a clip, as the engine computes it: TGrow before the nearest ×2 of the base variant,
 * and the 3×3 convolution behind it as four of 2×2.
 *
 * @param shapes of its tensors
 */
export function tinyDecoderFlops(
  shapes: TensorShapes,
  { frames, height, width }: LatentSize,
): number {
  const variant = shapes.has('decoder.0.weight') ? 'super' : 'base';
  const { first, stages, last } = tinyDecoderKeys[variant];
  const weights = (prefix: string) =>
    [...shapes]
      .filter(([name]) => name.startsWith(`${prefix}.`) && name.endsWith('.weight'))
      .reduce((sum, [, shape]) => sum + elementCount(shape), 0);
  let positions = frames * height * width;
  let total = weights(`decoder.${first}`) * positions;
  for (const { blocks, grow, convolution, frames: growth } of stages) {
    for (const block of blocks) total += weights(`decoder.${block}`) * positions;
    if (variant === 'base') {
      total += weights(`decoder.${grow}`) * positions;
      positions *= growth;
      total += (16 / 9) * weights(`decoder.${convolution}`) * positions;
      positions *= 4;
    } else {
      total += weights(`decoder.${convolution}`) * positions;
      positions *= 4;
      total += weights(`decoder.${grow}`) * positions;
      positions *= growth;
    }
  }
  return 2 * (total + weights(`decoder.${last}`) * positions);
}

/** What a side branch of one rank beside every linear of the blocks adds to a pass. */
export function loraFlops(config: TransformerConfig, tokens: number, rank: number): number {
  const d = transformerDim(config);
  // Keys and values of the text are left out: they have few rows.
  const widths = 6 * 2 * d + 2 * (d + config.ffn_dim);
  return 2 * tokens * rank * widths * config.num_layers;
}

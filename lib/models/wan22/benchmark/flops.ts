/*
 * Floating-point operations of each stage, two for a multiplication with its addition. Norms, activations and softmax are not counted.
 */
import {
  type TextEncoderConfig,
  type TransformerConfig,
  transformerDim,
  type VaeBlock,
} from '../config';

/** By graph: what one block of the transformer does for S tokens and a text of T rows. */
export function transformerBlockFlops(config: TransformerConfig, tokens: number, text: number) {
  const d = transformerDim(config);
  const linear = 2 * tokens * d * d;
  return {
    'keys-values': 2 * linear,
    'self-attention': 2 * linear + 4 * tokens * tokens * d,
    'cross-attention-feed-forward':
      2 * linear + 4 * tokens * text * d + 4 * tokens * d * config.ffn_dim,
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

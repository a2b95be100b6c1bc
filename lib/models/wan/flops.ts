/*
 * Floating-point operations of what works on rows, two for a multiplication with its addition. Norms, activations and softmax are not counted.
 */
import type { TextEncoderConfig } from '../umt5/config';
import { type TransformerConfig, transformerDim } from './config';

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

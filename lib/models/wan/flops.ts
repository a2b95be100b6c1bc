/*
 * Floating-point operations of what works on rows, two for a multiplication with its addition. Norms, activations and softmax are not counted.
 */
import { type TransformerConfig, transformerDim } from './config-schemas';

/** One pass of the transformer's blocks over a clip of S tokens, with a text of T rows. */
export function passFlops(config: TransformerConfig, tokens: number, text: number): number {
  const d = transformerDim(config);
  const linear = 2 * tokens * d * d;
  const block =
    // Self-attention, then cross-attention and the feed-forward network.
    4 * linear +
    4 * tokens * tokens * d +
    (4 * text * d * d + 2 * linear + 4 * tokens * text * d + 4 * tokens * d * config.ffn_dim);
  return config.num_layers * block;
}

import { z } from 'zod';
import type { ModelFolder } from '../../weights';
import { readConfig } from '../layers/config-file';

/**
 * Rows of the text context that the models were trained with: longer prompts are cut, shorter ones
 * filled with zeros. No config file says it.
 */
export const maxPromptTokens = 512;

const positive = z.int().positive();
const count = z.int().nonnegative();

/** `text_encoder/config.json`: the encoder of UMT5. */
const textEncoderSchema = z.object({
  model_type: z.literal('umt5'),
  vocab_size: positive,
  d_model: positive,
  /** Width of a head; heads · d_kv need not be d_model. */
  d_kv: positive,
  num_heads: positive,
  d_ff: positive,
  num_layers: positive,
  /** Even: half of the buckets look ahead. */
  relative_attention_num_buckets: positive.multipleOf(2),
  relative_attention_max_distance: positive,
  layer_norm_epsilon: z.number().positive(),
  feed_forward_proj: z.literal('gated-gelu'),
  pad_token_id: count,
  eos_token_id: count,
});

export type TextEncoderConfig = Readonly<z.output<typeof textEncoderSchema>>;

/** @throws KinoraError as {@link readConfig} does */
export function readTextEncoderConfig(folder: ModelFolder): Promise<TextEncoderConfig> {
  return readConfig(folder, 'text_encoder/config.json', textEncoderSchema);
}

import { z } from 'zod';
import type { ModelFolder } from '../../weights';
import { readConfig } from '../layers/config-file';
import type { TensorShapes } from '../layers/tensor-shapes';

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

/** The embedding may be stored under its tied name; see `withAliases`. */
export const textEncoderAliases: ReadonlyMap<string, string> = new Map([
  ['shared.weight', 'encoder.embed_tokens.weight'],
]);

/** All tensors of the text encoder: 242 for UMT5-XXL. No layer has a bias. */
export function textEncoderTensors(config: TextEncoderConfig): TensorShapes {
  const shapes: TensorShapes = new Map();
  const { d_model, d_ff } = config;
  const inner = config.num_heads * config.d_kv;

  shapes.set('shared.weight', [config.vocab_size, d_model]);
  for (let i = 0; i < config.num_layers; i++) {
    const attention = `encoder.block.${i}.layer.0`;
    for (const projection of ['q', 'k', 'v']) {
      shapes.set(`${attention}.SelfAttention.${projection}.weight`, [inner, d_model]);
    }
    shapes.set(`${attention}.SelfAttention.o.weight`, [d_model, inner]);
    shapes.set(`${attention}.SelfAttention.relative_attention_bias.weight`, [
      config.relative_attention_num_buckets,
      config.num_heads,
    ]);
    shapes.set(`${attention}.layer_norm.weight`, [d_model]);
    const feedForward = `encoder.block.${i}.layer.1`;
    shapes.set(`${feedForward}.DenseReluDense.wi_0.weight`, [d_ff, d_model]);
    shapes.set(`${feedForward}.DenseReluDense.wi_1.weight`, [d_ff, d_model]);
    shapes.set(`${feedForward}.DenseReluDense.wo.weight`, [d_model, d_ff]);
    shapes.set(`${feedForward}.layer_norm.weight`, [d_model]);
  }
  shapes.set('encoder.final_layer_norm.weight', [d_model]);
  return shapes;
}

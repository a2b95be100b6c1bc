import { loraBaseOf } from '../../contract';
import type { LoraArchitecture } from '../layers/lora';
import type { TransformerConfig } from './config';
import { originalTransformerName } from './original-names';
import { transformerTensors } from './tensors';

/** Parts that only blocks that attend to an image have. */
export const imageAttention =
  /k_img|v_img|norm_k_img|add_k_proj|add_v_proj|norm_added_k|img_emb|image_embedder/;

/**
 * A transformer, as LoRA files may change it.
 *
 * @param ignoresImage whether what a file has for an image branch is left out where the transformer has none
 */
export function loraArchitectureOf(
  config: TransformerConfig,
  { ignoresImage = false }: { readonly ignoresImage?: boolean } = {},
): LoraArchitecture {
  return {
    shapes: transformerTensors(config),
    originalName: originalTransformerName,
    baseOf: loraBaseOf,
    ...(ignoresImage && !config.image_dim && { ignores: (key) => imageAttention.test(key) }),
    baseOfKey(key) {
      if (!config.image_dim && imageAttention.test(key)) {
        return `a base with an image encoder (Wan2.1 I2V): it changes ${key}, which this model does not have`;
      }
      const block = Number(/blocks[._](\d+)[._]/.exec(key)?.[1] ?? -1);
      if (block < config.num_layers) return undefined;
      return `another base model: it changes block ${block} (${key}), this model has blocks 0 to ${config.num_layers - 1}`;
    },
  };
}

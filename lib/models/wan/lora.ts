import type { LoraArchitecture } from '../layers/lora';
import type { TransformerConfig } from './config';
import { originalTransformerName } from './original-names';
import { transformerTensors } from './tensors';

/** Hidden and feed-forward widths by which a base is known. */
const bases: readonly (readonly [name: string, widths: readonly number[]])[] = [
  ['Wan 14B', [5120, 13_824]],
  ['Wan 1.3B', [1536, 8960]],
  ['Wan2.2-TI2V-5B', [3072, 14_336]],
];

/** Parts that only blocks that attend to an image have. */
const imageAttention =
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
    baseOf: (shape) => bases.find(([, widths]) => shape.some((n) => widths.includes(n)))?.[0],
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

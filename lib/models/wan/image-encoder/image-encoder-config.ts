import { z } from 'zod';
import type { ModelFolder } from '../../../weights';
import { invalidConfig, readConfig } from '../../layers/config-file';

const positive = z.int().positive();

/** `image_encoder/config.json`: the vision tower of CLIP. */
const imageEncoderSchema = z.object({
  hidden_size: positive,
  intermediate_size: positive,
  /** The last layer is not used. */
  num_hidden_layers: positive.min(2),
  num_attention_heads: positive,
  image_size: positive,
  patch_size: positive,
  num_channels: z.literal(3).default(3),
  hidden_act: z.literal('gelu'),
  layer_norm_eps: z.number().positive(),
});

/** `image_processor/preprocessor_config.json`, of which only the geometry differs between files. */
const processorSchema = z.object({ do_center_crop: z.boolean().default(true) });

export type ImageEncoderConfig = Readonly<z.output<typeof imageEncoderSchema>> & {
  /**
   * Whether the square that the encoder sees is cut out of the picture's middle, as diffusers does it. Otherwise the
   * whole picture is stretched to the square, as the makers of the model do it.
   */
  readonly crops: boolean;
};

/** The file that says how pictures are brought to the encoder's size; without it they are stretched. */
export const processorFile = 'image_processor/preprocessor_config.json';

/** @throws KinoraError `MODEL_FILE_MISSING`, `MODEL_FILE_INVALID`, `MODEL_CONFIG_INVALID` */
export async function readImageEncoderConfig(folder: ModelFolder): Promise<ImageEncoderConfig> {
  const file = 'image_encoder/config.json';
  const config = await readConfig(folder, file, imageEncoderSchema);
  for (const [field, divisor] of [
    ['hidden_size', config.num_attention_heads],
    ['image_size', config.patch_size],
  ] as const) {
    if (config[field] % divisor === 0) continue;
    throw invalidConfig(file, field, config[field], `expected a multiple of ${divisor}`);
  }
  const hasProcessor = await folder.exists(processorFile);
  const crops = hasProcessor
    ? (await readConfig(folder, processorFile, processorSchema)).do_center_crop
    : false;
  return { ...config, crops };
}

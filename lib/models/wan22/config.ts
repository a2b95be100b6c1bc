import { z } from 'zod';
import type { ModelFolder } from '../../weights';
import { invalidConfig, readConfig } from '../layers/config';
import { readTextEncoderConfig, type TextEncoderConfig } from '../umt5/config';
import {
  completeVae,
  empty,
  type SchedulerConfig,
  schedulerSchema,
  type TransformerConfig,
  transformerSchema,
  type VaeConfig,
  vaeSchema,
} from '../wan/config';

const component = (name: string) => z.tuple([z.string(), z.literal(name)]);
const noComponent = z.union([z.null(), z.tuple([z.null(), z.null()])]).optional();

/** `model_index.json`: which parts there are. Timesteps per token are what makes it the TI2V model. */
const modelIndexSchema = z.object({
  _class_name: z.enum(['WanPipeline', 'WanImageToVideoPipeline']),
  expand_timesteps: z.literal(true),
  boundary_ratio: empty,
  transformer: component('WanTransformer3DModel'),
  transformer_2: noComponent,
  vae: component('AutoencoderKLWan'),
  text_encoder: component('UMT5EncoderModel'),
  scheduler: component('UniPCMultistepScheduler'),
  image_encoder: noComponent,
});

/** The transformer attends to no image beside the text. */
const textTransformerSchema = transformerSchema.extend({
  image_dim: empty,
  added_kv_proj_dim: empty,
});

/** The residual VAE of Wan2.2. */
const residualVaeSchema = vaeSchema.extend({
  is_residual: z.literal(true),
  patch_size: z.int().positive(),
});

/** Everything that a model folder's config files say, in the files' own names. */
export interface ModelConfig {
  readonly transformer: TransformerConfig;
  readonly vae: VaeConfig;
  readonly text_encoder: TextEncoderConfig;
  readonly scheduler: SchedulerConfig;
}

/**
 * Reads and checks the config files of a model folder. Every dimension of the model comes from here.
 *
 * @throws KinoraError `MODEL_FILE_MISSING`, `MODEL_FILE_INVALID`; `MODEL_CONFIG_INVALID` naming the
 * field when the model is not of the Wan2.2-TI2V architecture or its parts do not fit together
 */
export async function readModelConfig(folder: ModelFolder): Promise<ModelConfig> {
  await readConfig(folder, 'model_index.json', modelIndexSchema);
  const [transformer, vaeFile, textEncoder, scheduler] = await Promise.all([
    readConfig(folder, 'transformer/config.json', textTransformerSchema),
    readConfig(folder, 'vae/config.json', residualVaeSchema),
    readTextEncoderConfig(folder),
    readConfig(folder, 'scheduler/scheduler_config.json', schedulerSchema),
  ]);
  const vae = completeVae(vaeFile);
  checkTogether(transformer, vae, textEncoder);
  return { transformer, vae, text_encoder: textEncoder, scheduler };
}

function checkTogether(
  transformer: TransformerConfig,
  vae: VaeConfig,
  textEncoder: TextEncoderConfig,
): void {
  const file = 'transformer/config.json';
  // 36 input channels (16 for the noise, 20 for mask and image) is how the larger I2V models do it.
  for (const field of ['in_channels', 'out_channels'] as const) {
    if (transformer[field] !== vae.z_dim) {
      throw invalidConfig(
        file,
        field,
        transformer[field],
        `expected ${vae.z_dim}, the z_dim of the VAE`,
      );
    }
  }
  if (transformer.text_dim !== textEncoder.d_model) {
    const expectation = `expected ${textEncoder.d_model}, the d_model of the text encoder`;
    throw invalidConfig(file, 'text_dim', transformer.text_dim, expectation);
  }
}

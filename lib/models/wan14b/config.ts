import { z } from 'zod';
import type { ModelFolder } from '../../weights';
import { invalidConfig, readConfig } from '../layers/config';
import { readTextEncoderConfig } from '../umt5/config';
import {
  completeVae,
  type SchedulerConfig,
  schedulerSchema,
  type TransformerConfig,
  transformerSchema,
  type VaeConfig,
  vaeSchema,
} from '../wan/config';
import type { WanConfig } from '../wan/model';
import { type ImageEncoderConfig, readImageEncoderConfig } from './image-encoder/config';

const none = z.union([z.null(), z.tuple([z.null(), z.null()])]).optional();
const component = (name: string) => z.tuple([z.string(), z.literal(name)]);
const optional = (name: string) => z.union([component(name), none]);

/** `model_index.json`: a second transformer makes it Wan2.2-A14B, an image encoder Wan2.1. */
const modelIndexSchema = z.object({
  _class_name: z.literal('WanImageToVideoPipeline'),
  expand_timesteps: z.literal(false).nullish(),
  /** Share of the timesteps from which on the first of two transformers computes. */
  boundary_ratio: z.number().gt(0).lt(1).nullish(),
  transformer: component('WanTransformer3DModel'),
  transformer_2: optional('WanTransformer3DModel'),
  vae: component('AutoencoderKLWan'),
  text_encoder: component('UMT5EncoderModel'),
  scheduler: component('UniPCMultistepScheduler'),
  image_encoder: z.union([
    component('CLIPVisionModel'),
    component('CLIPVisionModelWithProjection'),
    none,
  ]),
});

/** The VAE of Wan2.1: its levels have no shortcuts around them. */
const plainVaeSchema = vaeSchema.extend({ is_residual: z.literal(false).default(false) });

/** Channels of the mask that stands before the latents of the pictures: a latent frame's frames. */
export const maskChannels = 4;

/** What denoising and decoding depend on. */
export interface VideoConfig {
  readonly transformer: TransformerConfig;
  readonly vae: VaeConfig;
  readonly scheduler: SchedulerConfig;
  /** The timestep from which on the first of two transformers computes; null where there is one. */
  readonly boundary: number | null;
  /** Null where blocks attend to the text only. */
  readonly image_encoder: ImageEncoderConfig | null;
}

/** Everything that a model folder's config files say, in the files' own names. */
export type ModelConfig = VideoConfig & WanConfig;

/**
 * Reads and checks the config files of a model folder but the text encoder's.
 *
 * @throws KinoraError `MODEL_FILE_MISSING`, `MODEL_FILE_INVALID`; `MODEL_CONFIG_INVALID` naming the field when the
 * model is no image-to-video model of Wan2.1 or Wan2.2-A14B, or its parts do not fit together
 */
export async function readVideoConfig(folder: ModelFolder): Promise<VideoConfig> {
  const index = await readConfig(folder, 'model_index.json', modelIndexSchema);
  const read = (part: string) => readConfig(folder, `${part}/config.json`, transformerSchema);
  const [transformer, vaeFile, scheduler] = await Promise.all([
    read('transformer'),
    readConfig(folder, 'vae/config.json', plainVaeSchema),
    readConfig(folder, 'scheduler/scheduler_config.json', schedulerSchema),
  ]);
  const vae = completeVae(vaeFile);
  const hasTwo = Boolean(index.transformer_2?.[1]);
  if (hasTwo) checkAlike(transformer, await read('transformer_2'));
  const hasImage = Boolean(index.image_encoder?.[1]);
  const image_encoder = hasImage ? await readImageEncoderConfig(folder) : null;
  const { boundary_ratio: ratio } = index;
  if (hasTwo !== (typeof ratio === 'number')) {
    const expectation = hasTwo ? 'expected a number' : 'but there is one transformer';
    throw invalidConfig('model_index.json', 'boundary_ratio', ratio, expectation);
  }
  const boundary = typeof ratio === 'number' ? ratio * scheduler.num_train_timesteps : null;
  checkTogether(transformer, vae, image_encoder);
  return { transformer, vae, scheduler, boundary, image_encoder };
}

/** Reads and checks all config files of a model folder. @throws KinoraError as {@link readVideoConfig} does */
export async function readModelConfig(folder: ModelFolder): Promise<ModelConfig> {
  const [video, text_encoder] = await Promise.all([
    readVideoConfig(folder),
    readTextEncoderConfig(folder),
  ]);
  const { text_dim } = video.transformer;
  if (text_dim === text_encoder.d_model) return { ...video, text_encoder };
  const expectation = `expected ${text_encoder.d_model}, the d_model of the text encoder`;
  throw invalidConfig('transformer/config.json', 'text_dim', text_dim, expectation);
}

/** Both transformers take the same clip. */
function checkAlike(first: TransformerConfig, second: TransformerConfig): void {
  for (const field of Object.keys(first) as (keyof TransformerConfig)[]) {
    if (JSON.stringify(first[field]) === JSON.stringify(second[field])) continue;
    const expectation = `expected ${JSON.stringify(first[field])}, that of transformer`;
    throw invalidConfig('transformer_2/config.json', field, second[field], expectation);
  }
}

function checkTogether(
  transformer: TransformerConfig,
  vae: VaeConfig,
  encoder: ImageEncoderConfig | null,
): void {
  const { z_dim } = vae;
  const image = encoder?.hidden_size ?? null;
  const dim = image && transformer.num_attention_heads * transformer.attention_head_dim;
  for (const [field, expected, what] of [
    ['out_channels', z_dim, 'the z_dim of the VAE'],
    ['in_channels', 2 * z_dim + maskChannels, 'for latents, mask and latents of pictures'],
    ['image_dim', image, 'the width of the image encoder'],
    ['added_kv_proj_dim', dim, 'the width of the transformer'],
  ] as const) {
    const actual = transformer[field] ?? null;
    if (actual === expected) continue;
    const expectation = `expected ${expected}, ${what}`;
    throw invalidConfig('transformer/config.json', field, actual, expectation);
  }
  if (vae.scale_factor_temporal === maskChannels) return;
  const expectation = `expected ${maskChannels}, the channels of the mask`;
  const { scale_factor_temporal: stride } = vae;
  throw invalidConfig('vae/config.json', 'temperal_downsample', stride, expectation);
}

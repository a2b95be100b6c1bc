import { z } from 'zod';
import type { ModelFolder } from '../../weights';
import { invalidConfig, readConfig } from '../layers/config-file';
import { readTextEncoderConfig, type TextEncoderConfig } from '../umt5/text-encoder-config';
import {
  completeVae,
  type SchedulerConfig,
  schedulerSchema,
  type TransformerConfig,
  transformerDim,
  transformerSchema,
  type VaeConfig,
  vaeSchema,
} from './config-schemas';
import {
  type ImageEncoderConfig,
  readImageEncoderConfig,
} from './image-encoder/image-encoder-config';
import { type WanKind, wanKinds } from './kinds';

const none = z.union([z.null(), z.tuple([z.null(), z.null()])]).optional();
const component = (name: string) => z.tuple([z.string(), z.literal(name)]);

/** `model_index.json`: which parts there are. */
const modelIndexSchema = z.object({
  _class_name: z.enum(['WanPipeline', 'WanImageToVideoPipeline']),
  /** Whether each token has a timestep of its own, so that a clip keeps the frames that it is given. */
  expand_timesteps: z.boolean().nullish(),
  /** Share of the timesteps from which on the first of two transformers computes. */
  boundary_ratio: z.number().gt(0).lt(1).nullish(),
  transformer: component('WanTransformer3DModel'),
  transformer_2: z.union([component('WanTransformer3DModel'), none]),
  vae: component('AutoencoderKLWan'),
  text_encoder: component('UMT5EncoderModel'),
  scheduler: component('UniPCMultistepScheduler'),
  image_encoder: z.union([
    component('CLIPVisionModel'),
    component('CLIPVisionModelWithProjection'),
    none,
  ]),
});

/** The residual VAE of Wan2.2, and that of Wan2.1. */
const vaeSchemas = {
  48: vaeSchema.extend({ is_residual: z.literal(true), patch_size: z.int().positive() }),
  16: vaeSchema.extend({ is_residual: z.literal(false).default(false) }),
};

/** Channels of the mask that stands before the latents of the pictures: a latent frame's frames. */
export const maskChannels = 4;

/** What denoising and decoding depend on, in the files' own names. */
export interface VideoConfig {
  readonly kind: WanKind;
  readonly transformer: TransformerConfig;
  readonly vae: VaeConfig;
  readonly scheduler: SchedulerConfig;
  /** The timestep from which on the first of two transformers computes; null where there is one. */
  readonly boundary: number | null;
  /** Null where blocks attend to the text only. */
  readonly image_encoder: ImageEncoderConfig | null;
}

/** Everything that a model folder's config files say. */
export interface ModelConfig extends VideoConfig {
  readonly text_encoder: TextEncoderConfig;
}

/**
 * Reads and checks the config files of a model folder but the text encoder's. Every dimension of the model comes from
 * them.
 *
 * @param wanted the kind that it has to be; the one that the files tell when absent
 * @throws KinoraError `MODEL_FILE_MISSING`, `MODEL_FILE_INVALID`; `MODEL_CONFIG_INVALID` naming the field when the
 * model is none of the kind, or its parts do not fit together
 */
export async function readVideoConfig(folder: ModelFolder, wanted?: WanKind): Promise<VideoConfig> {
  const file = 'model_index.json';
  const index = await readConfig(folder, file, modelIndexSchema);
  const { expand_timesteps: expands, boundary_ratio: ratio } = index;
  const kind = expands ? wanKinds.wan22 : wanKinds.wan14b;
  if (wanted && wanted !== kind) {
    throw invalidConfig(
      file,
      'expand_timesteps',
      expands,
      `expected that of a ${wanted.name} model`,
    );
  }
  for (const part of ['transformer_2', 'image_encoder'] as const) {
    if (kind.varies || !index[part]?.[1]) continue;
    throw invalidConfig(file, part, index[part], `which a ${kind.name} model does not have`);
  }
  const hasTwo = Boolean(index.transformer_2?.[1]);
  if (hasTwo !== (typeof ratio === 'number')) {
    const expectation = hasTwo ? 'expected a number' : 'but there is one transformer';
    throw invalidConfig(file, 'boundary_ratio', ratio, expectation);
  }
  const read = (part: string) => readConfig(folder, `${part}/config.json`, transformerSchema);
  const [transformer, vaeFile, scheduler] = await Promise.all([
    read('transformer'),
    readConfig(folder, 'vae/config.json', vaeSchemas[kind.latentChannels]),
    readConfig(folder, 'scheduler/scheduler_config.json', schedulerSchema),
  ]);
  if (hasTwo) checkAlike(transformer, await read('transformer_2'));
  const config = {
    kind,
    transformer,
    vae: completeVae(vaeFile),
    scheduler,
    boundary: typeof ratio === 'number' ? ratio * scheduler.num_train_timesteps : null,
    image_encoder: index.image_encoder?.[1] ? await readImageEncoderConfig(folder) : null,
  };
  checkTogether(config);
  return config;
}

/** Reads and checks all config files of a model folder. @param wanted @throws as {@link readVideoConfig} */
export async function readModelConfig(folder: ModelFolder, wanted?: WanKind): Promise<ModelConfig> {
  const [video, text_encoder] = await Promise.all([
    readVideoConfig(folder, wanted),
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

function checkTogether({ kind, transformer, vae, image_encoder: encoder }: VideoConfig): void {
  const { z_dim, scale_factor_temporal: stride } = vae;
  const conditioned = kind.pictures === 'channels';
  const [inputs, why] = conditioned
    ? [2 * z_dim + maskChannels, 'for latents, mask and latents of pictures']
    : [z_dim, 'the z_dim of the VAE'];
  for (const [field, expected, what] of [
    ['out_channels', z_dim, 'the z_dim of the VAE'],
    ['in_channels', inputs, why],
    ['image_dim', encoder?.hidden_size ?? null, 'the width of the image encoder'],
    ['added_kv_proj_dim', encoder && transformerDim(transformer), 'the width of the transformer'],
  ] as const) {
    const actual = transformer[field] ?? null;
    if (actual === expected) continue;
    const expectation = `expected ${expected}, ${what}`;
    throw invalidConfig('transformer/config.json', field, actual, expectation);
  }
  if (!conditioned || stride === maskChannels) return;
  const expectation = `expected ${maskChannels}, the channels of the mask`;
  throw invalidConfig('vae/config.json', 'temperal_downsample', stride, expectation);
}

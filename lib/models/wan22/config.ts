import { z } from 'zod';
import { at } from '../../contract';
import type { ModelFolder } from '../../weights';
import { invalidConfig, readConfig } from '../layers/config';
import { readTextEncoderConfig, type TextEncoderConfig } from '../umt5/config';

const positive = z.int().positive();
/** A field that other Wan models use and this architecture leaves empty. */
const empty = z.null().optional();

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

/** `transformer/config.json`. The model's width is `num_attention_heads · attention_head_dim`. */
const transformerSchema = z.object({
  _class_name: z.literal('WanTransformer3DModel').optional(),
  /** Latent patch per token, [frames, height, width]. */
  patch_size: z.tuple([z.literal(1), positive, positive]),
  num_attention_heads: positive,
  /** Even, and at least 6: rotary pairs for time, height and width. */
  attention_head_dim: positive.multipleOf(2).min(6),
  in_channels: positive,
  out_channels: positive,
  /** Width of the text embeddings. */
  text_dim: positive,
  /** Length of the timestep's sinusoid. */
  freq_dim: positive.multipleOf(2),
  ffn_dim: positive,
  num_layers: positive,
  cross_attn_norm: z.literal(true),
  qk_norm: z.literal('rms_norm_across_heads'),
  eps: z.number().positive(),
  rope_max_seq_len: positive,
  image_dim: empty,
  added_kv_proj_dim: empty,
  pos_embed_seq_len: empty,
});

/** `vae/config.json`: the residual VAE of Wan2.2. */
const vaeSchema = z.object({
  _class_name: z.literal('AutoencoderKLWan').optional(),
  base_dim: positive,
  /** `base_dim` when null. */
  decoder_base_dim: positive.nullish(),
  z_dim: positive,
  /** Width of each level as a multiple of the base. */
  dim_mult: z.array(positive).min(2),
  num_res_blocks: positive,
  attn_scales: z.array(z.number()).length(0),
  /** Which levels also halve the time; the files' own spelling. */
  temperal_downsample: z.array(z.boolean()).min(1),
  is_residual: z.literal(true),
  in_channels: positive,
  out_channels: positive,
  /** Pixels folded into channels, on each side. */
  patch_size: positive,
  scale_factor_temporal: positive,
  scale_factor_spatial: positive,
  latents_mean: z.array(z.number()),
  latents_std: z.array(z.number().positive()),
});

/** `scheduler/scheduler_config.json`: UniPC for flow matching. */
const schedulerSchema = z.object({
  _class_name: z.literal('UniPCMultistepScheduler').optional(),
  prediction_type: z.literal('flow_prediction'),
  use_flow_sigmas: z.literal(true),
  flow_shift: z.number().positive(),
  num_train_timesteps: z.literal(1000),
  solver_type: z.literal('bh2'),
  solver_order: z.literal(2),
  predict_x0: z.literal(true),
  lower_order_final: z.literal(true),
  disable_corrector: z.array(z.int()).length(0).default([]),
  final_sigmas_type: z.literal('zero').default('zero'),
  thresholding: z.literal(false).default(false),
  use_dynamic_shifting: z.literal(false).default(false),
  use_karras_sigmas: z.literal(false).nullish(),
  use_exponential_sigmas: z.literal(false).nullish(),
  use_beta_sigmas: z.literal(false).nullish(),
  shift_terminal: empty,
});

export type TransformerConfig = Readonly<z.output<typeof transformerSchema>>;
export type VaeConfig = Readonly<Omit<z.output<typeof vaeSchema>, 'decoder_base_dim'>> & {
  readonly decoder_base_dim: number;
};
export type SchedulerConfig = Readonly<z.output<typeof schedulerSchema>>;

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
    readConfig(folder, 'transformer/config.json', transformerSchema),
    readConfig(folder, 'vae/config.json', vaeSchema),
    readTextEncoderConfig(folder),
    readConfig(folder, 'scheduler/scheduler_config.json', schedulerSchema),
  ]);
  const vae = { ...vaeFile, decoder_base_dim: vaeFile.decoder_base_dim ?? vaeFile.base_dim };
  checkVae(vae);
  checkTogether(transformer, vae, textEncoder);
  return { transformer, vae, text_encoder: textEncoder, scheduler };
}

function checkVae(vae: VaeConfig): void {
  function expect(field: keyof VaeConfig, expected: unknown, actual: unknown = vae[field]): void {
    if (actual !== expected) {
      throw invalidConfig('vae/config.json', field, vae[field], `expected ${expected}`);
    }
  }
  const levels = vae.dim_mult.length;
  if (vae.temperal_downsample.length !== levels - 1) {
    const expectation = `expected ${levels - 1} values, one less than dim_mult`;
    throw invalidConfig(
      'vae/config.json',
      'temperal_downsample',
      vae.temperal_downsample,
      expectation,
    );
  }
  expect('in_channels', 3 * vae.patch_size ** 2);
  expect('out_channels', 3 * vae.patch_size ** 2);
  expect('scale_factor_spatial', vae.patch_size * 2 ** (levels - 1));
  expect('scale_factor_temporal', 2 ** vae.temperal_downsample.filter(Boolean).length);
  for (const field of ['latents_mean', 'latents_std'] as const) {
    if (vae[field].length !== vae.z_dim) {
      const actual = `${vae[field].length} values`;
      throw invalidConfig(
        'vae/config.json',
        field,
        actual,
        `expected one for each of z_dim ${vae.z_dim}`,
      );
    }
  }
  // The shortcuts around a block average or repeat whole groups of channels.
  const factor = ({ time, space }: VaeBlock) => (time ? 2 : 1) * (space ? 4 : 1);
  const broken =
    encoderBlocks(vae).find((block) => (block.in_dim * factor(block)) % block.out_dim !== 0) ??
    decoderBlocks(vae).find(
      (block) =>
        block.space &&
        ((block.out_dim * factor(block)) % block.in_dim !== 0 ||
          block.in_dim % block.out_dim !== 0),
    );
  if (broken) {
    const { name, in_dim, out_dim } = broken;
    const expectation = `which gives ${name} ${in_dim} and ${out_dim} channels that do not divide`;
    throw invalidConfig('vae/config.json', 'dim_mult', vae.dim_mult, expectation);
  }
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

/** Width of the transformer's hidden state. */
export function transformerDim(config: TransformerConfig): number {
  return config.num_attention_heads * config.attention_head_dim;
}

/** One level of the VAE. */
export interface VaeBlock {
  /** Prefix of its tensors, such as `encoder.down_blocks.0`. */
  readonly name: string;
  readonly in_dim: number;
  readonly out_dim: number;
  readonly resnets: number;
  /** Whether it halves or doubles height and width. */
  readonly space: boolean;
  /** Whether it also halves or doubles the time. */
  readonly time: boolean;
}

/** The encoder's levels, in forward order. */
export function encoderBlocks(config: VaeConfig): VaeBlock[] {
  const dims = [1, ...config.dim_mult].map((multiple) => multiple * config.base_dim);
  return config.dim_mult.map((_, i) => ({
    name: `encoder.down_blocks.${i}`,
    in_dim: at(dims, i),
    out_dim: at(dims, i + 1),
    resnets: config.num_res_blocks,
    space: i < config.dim_mult.length - 1,
    time: config.temperal_downsample[i] ?? false,
  }));
}

/** The decoder's levels, in forward order: the encoder's, backwards, with one residual block more. */
export function decoderBlocks(config: VaeConfig): VaeBlock[] {
  const multiples = config.dim_mult.toReversed();
  const dims = [at(multiples, 0), ...multiples].map((m) => m * config.decoder_base_dim);
  const doublesTime = config.temperal_downsample.toReversed();
  return multiples.map((_, i) => ({
    name: `decoder.up_blocks.${i}`,
    in_dim: at(dims, i),
    out_dim: at(dims, i + 1),
    resnets: config.num_res_blocks + 1,
    space: i < multiples.length - 1,
    time: doublesTime[i] ?? false,
  }));
}

import { z } from 'zod';
import { at } from '../../contract';
import { invalidConfig } from '../layers/config-file';

/*
 * What the configuration files of all Wan models have in common, in the files' own names. A family narrows it to what it runs.
 */

const positive = z.int().positive();
/** A field that has to be empty. */
export const empty = z.null().optional();

/** `transformer/config.json`. The model's width is `num_attention_heads · attention_head_dim`. */
export const transformerSchema = z.object({
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
  /** Width of the image encoder's features, where blocks attend to an image, too. */
  image_dim: positive.nullish(),
  added_kv_proj_dim: positive.nullish(),
  pos_embed_seq_len: empty,
});

/** `vae/config.json`. Fields with defaults are not in the files of Wan2.1. */
export const vaeSchema = z.object({
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
  /** Whether levels have shortcuts around them, as in Wan2.2-TI2V. */
  is_residual: z.boolean().default(false),
  in_channels: positive.default(3),
  out_channels: positive.default(3),
  /** Pixels folded into channels, on each side; none when null. */
  patch_size: positive.nullish(),
  scale_factor_temporal: positive.default(4),
  scale_factor_spatial: positive.default(8),
  latents_mean: z.array(z.number()),
  latents_std: z.array(z.number().positive()),
});

/** `scheduler/scheduler_config.json`: UniPC for flow matching. */
export const schedulerSchema = z.object({
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
type VaeFile = Readonly<z.output<typeof vaeSchema>>;
export type VaeConfig = Omit<VaeFile, 'decoder_base_dim' | 'patch_size'> & {
  readonly decoder_base_dim: number;
  readonly patch_size: number;
};
export type SchedulerConfig = Readonly<z.output<typeof schedulerSchema>>;

/**
 * A VAE's configuration with its defaults.
 *
 * @throws KinoraError `MODEL_CONFIG_INVALID` naming the field whose value does not fit the others
 */
export function completeVae(file: VaeFile): VaeConfig {
  const { decoder_base_dim, patch_size, base_dim } = file;
  const vae = {
    ...file,
    decoder_base_dim: decoder_base_dim ?? base_dim,
    patch_size: patch_size ?? 1,
  };
  checkVae(vae);
  return vae;
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
  if (!vae.is_residual) return;
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

/** The VAE with another decoder, whose first convolution has so many filters. */
export function withDecoder(vae: VaeConfig, filters: number): VaeConfig {
  return { ...vae, decoder_base_dim: filters / at(vae.dim_mult, vae.dim_mult.length - 1) };
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
  /** Names of its residual blocks. */
  readonly resnets: readonly string[];
  /** Name of what changes the size behind them; also of levels that have none. */
  readonly resampler: string;
  /** Channels behind that. */
  readonly next_dim: number;
  /** Whether it halves or doubles height and width. */
  readonly space: boolean;
  /** Whether it also halves or doubles the time. */
  readonly time: boolean;
  /** Whether its input goes around it, averaged or repeated, and is added to its result. */
  readonly shortcut: boolean;
}

/**
 * The encoder's levels, in forward order. Without shortcuts the files count residual blocks and resamplers of all
 * levels in one sequence.
 */
export function encoderBlocks(config: VaeConfig): VaeBlock[] {
  const dims = [1, ...config.dim_mult].map((multiple) => multiple * config.base_dim);
  const { num_res_blocks: count, is_residual: shortcut } = config;
  return config.dim_mult.map((_, i) => {
    const level = `encoder.down_blocks.${i}`;
    const flat = (index: number) => `encoder.down_blocks.${i * (count + 1) + index}`;
    return {
      name: level,
      in_dim: at(dims, i),
      out_dim: at(dims, i + 1),
      resnets: Array.from({ length: count }, (_, r) =>
        shortcut ? `${level}.resnets.${r}` : flat(r),
      ),
      resampler: shortcut ? `${level}.downsampler` : flat(count),
      next_dim: at(dims, i + 1),
      space: i < config.dim_mult.length - 1,
      time: config.temperal_downsample[i] ?? false,
      shortcut,
    };
  });
}

/**
 * The decoder's levels, in forward order: the encoder's, backwards, with one residual block more. Without shortcuts a
 * level that grows halves its channels.
 */
export function decoderBlocks(config: VaeConfig): VaeBlock[] {
  const multiples = config.dim_mult.toReversed();
  const dims = [at(multiples, 0), ...multiples].map((m) => m * config.decoder_base_dim);
  const doublesTime = config.temperal_downsample.toReversed();
  const { is_residual: shortcut } = config;
  const nextOf = (dim: number, space: boolean) => (space && !shortcut ? dim / 2 : dim);
  return multiples.map((_, i) => {
    const name = `decoder.up_blocks.${i}`;
    const space = i < multiples.length - 1;
    return {
      name,
      in_dim: nextOf(at(dims, i), i > 0),
      out_dim: at(dims, i + 1),
      resnets: Array.from({ length: config.num_res_blocks + 1 }, (_, r) => `${name}.resnets.${r}`),
      resampler: shortcut ? `${name}.upsampler` : `${name}.upsamplers.0`,
      next_dim: nextOf(at(dims, i + 1), space),
      space,
      time: doublesTime[i] ?? false,
      shortcut,
    };
  });
}

import { z } from 'zod';
import { at, KinoraError } from '../contract';
import { bicubic, type Preprocessing, triangle } from '../pipeline/vision/squares';

/** How a checker's file names its tensors. */
export type Layout = 'timm' | 'transformers';

/** What `config.json` says of a checker; all sizes but these come from the tensors. */
export interface CheckerConfig {
  readonly layout: Layout;
  /** Heads of attention; null: as many as there are 64 channels. */
  readonly heads: number | null;
  /** Of every layer norm. */
  readonly epsilon: number;
  /** Which of the two logits means unsafe. */
  readonly unsafeIndex: 0 | 1;
  readonly preprocessing: Preprocessing;
}

const three = z.array(z.number()).length(3);
const half = [0.5, 0.5, 0.5];

/** https://github.com/huggingface/pytorch-image-models: what `timm` writes to the hub. */
const timmSchema = z.looseObject({
  architecture: z.string().regex(/^vit_/),
  global_pool: z.literal('token').default('token'),
  model_args: z.looseObject({ num_heads: z.int().positive().optional() }).default({}),
  pretrained_cfg: z.looseObject({
    input_size: z.tuple([z.literal(3), z.int().positive(), z.int().positive()]),
    interpolation: z.enum(['bicubic', 'bilinear']),
    // Less than the whole image would be seen.
    crop_pct: z.literal(1),
    mean: three,
    std: three.refine((std) => std.every((value) => value > 0)),
    label_names: z.array(z.string()),
  }),
});

/** `ViTConfig` of https://github.com/huggingface/transformers. */
const transformersSchema = z.looseObject({
  model_type: z.literal('vit'),
  hidden_act: z.literal('gelu').default('gelu'),
  image_size: z.int().positive(),
  num_attention_heads: z.int().positive(),
  layer_norm_eps: z.number().positive().default(1e-12),
  num_channels: z.literal(3).default(3),
  qkv_bias: z.literal(true).default(true),
  id2label: z.record(z.string(), z.string()),
});

/** `ViTImageProcessor`; its older form gives the size as one number. */
const processorSchema = z.looseObject({
  resample: z.union([z.literal(2), z.literal(3)]).default(2),
  size: z
    .union([
      z.int().positive(),
      z.looseObject({ height: z.int().positive(), width: z.int().positive() }),
    ])
    .optional(),
  image_mean: three.default(half),
  image_std: three.refine((std) => std.every((value) => value > 0)).default(half),
});

/**
 * Reads a checker's configuration in the layout of timm or of transformers.
 *
 * @param processor `preprocessor_config.json` of the transformers layout; its usual values when absent
 * @throws KinoraError `MODEL_CONFIG_INVALID`, also for labels that do not say which means unsafe
 */
export function parseCheckerConfig(config: unknown, processor: unknown = {}): CheckerConfig {
  const isTimm = typeof config === 'object' && config !== null && 'pretrained_cfg' in config;
  return isTimm ? timmConfig(config) : transformersConfig(config, processor);
}

function timmConfig(config: unknown): CheckerConfig {
  const { model_args, pretrained_cfg } = check('config.json', timmSchema, config);
  const { input_size, interpolation, mean, std, label_names } = pretrained_cfg;
  const [, height, width] = input_size;
  return {
    layout: 'timm',
    heads: model_args.num_heads ?? null,
    epsilon: 1e-6, // timm's own; its files do not name it
    unsafeIndex: unsafeIndexOf(label_names),
    preprocessing: {
      size: square(height, width),
      kernel: interpolation === 'bicubic' ? bicubic : triangle,
      fit: 'cover',
      mean,
      std,
    },
  };
}

function transformersConfig(config: unknown, processor: unknown): CheckerConfig {
  const vit = check('config.json', transformersSchema, config);
  const images = check('preprocessor_config.json', processorSchema, processor);
  const { size = vit.image_size } = images;
  const side = typeof size === 'number' ? size : square(size.height, size.width);
  if (side !== vit.image_size) {
    throw invalid(`Images of ${side} pixels are announced for a model of ${vit.image_size}.`);
  }
  const labels = Object.keys(vit.id2label).map((_, index) => vit.id2label[index] ?? '');
  return {
    layout: 'transformers',
    heads: vit.num_attention_heads,
    epsilon: vit.layer_norm_eps,
    unsafeIndex: unsafeIndexOf(labels),
    preprocessing: {
      size: side,
      kernel: images.resample === 3 ? bicubic : triangle,
      fit: 'stretch',
      mean: images.image_mean,
      std: images.image_std,
    },
  };
}

/** With labels that were guessed, the checker would say the opposite. */
function unsafeIndexOf(labels: readonly string[]): 0 | 1 {
  const unsafe = labels.findIndex((label) => /^nsfw$/i.test(label));
  const known = labels.length === 2 && unsafe !== -1;
  if (known && /^(sfw|normal)$/i.test(at(labels, 1 - unsafe))) return unsafe === 0 ? 0 : 1;
  const names = labels.map((label) => `"${label}"`).join(', ') || 'none';
  throw invalid(`Its labels have to be "nsfw" and "sfw" or "normal", in any order, not ${names}.`);
}

function square(height: number, width: number): number {
  if (height === width) return height;
  throw invalid(`It takes images of ${width}×${height} pixels; they have to be square.`);
}

function check<T>(file: string, schema: z.ZodType<T>, value: unknown): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw invalid(
    `${file} is not valid at ${issue?.path.join('.') || 'its root'}: ${issue?.message}.`,
  );
}

/** The error for a checker that this code cannot run. */
export function invalid(detail: string): KinoraError {
  return new KinoraError('MODEL_CONFIG_INVALID', `The safety checker cannot be used. ${detail}`, {
    remedy:
      'Use Marqo/nsfw-image-detection-384, or another vision transformer in one of its layouts.',
  });
}

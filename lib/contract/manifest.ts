import { z } from 'zod';
import { KinoraError } from './errors';
import { profilesSchema } from './profile';
import { sizes } from './request';

const nativeSize = z.object({
  width: z.int().positive().multipleOf(32),
  height: z.int().positive().multipleOf(32),
});

/** The model family of what names none: manifests and references from before there were several. */
export const defaultFamily = 'wan22';

/** How the weights of linear layers are held on the device: plain, or in blocks of 32 with a scale. */
export const precisions = ['f32', 'int8', 'int4'] as const;
export type Precision = (typeof precisions)[number];

/**
 * The parts of a model that are fetched and kept on their own. `configuration` is every small file:
 * the components' config.json, the scheduler's and the tokenizer's files.
 */
export const componentIds = [
  'configuration',
  'transformer',
  'text_encoder',
  'vae',
  'tiny_decoder',
] as const;
export type ComponentId = (typeof componentIds)[number];

/** One file of a repository on the hub. */
export const sourceFileSchema = z.object({
  /** `owner/name` */
  repository: z.string().regex(/^[\w.-]+\/[\w.-]+$/),
  /** Path inside the repository. A file of the configuration is kept under this path. */
  path: z.string().min(1),
  /** Branch, tag or commit. */
  revision: z.string().min(1).default('main'),
  /** Size in bytes, where it is known beforehand; the hub's answer counts. */
  bytes: z.int().positive().optional(),
  /** SHA-256 in hex, where it is known beforehand. */
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .optional(),
});
export type SourceFile = z.output<typeof sourceFileSchema>;

const componentSourceSchema = z.object({
  component: z.enum(componentIds),
  /** The precision choice that these files are for; absent means for each. */
  precision: z.enum(precisions).optional(),
  /** One file, the shards of one, or the files of the configuration. */
  files: z.array(sourceFileSchema).min(1),
  /** Not needed to run, and not fetched with the model. */
  optional: z.boolean().default(false),
});
export type ComponentSource = z.output<typeof componentSourceSchema>;

const precisionChoiceSchema = z.object({
  precision: z.enum(precisions),
  /** Short, for a picker: "8-bit". */
  name: z.string().min(1),
  description: z.string().default(''),
  /** Device bytes with everything resident, and the least it can run in (blocks streamed, VAE tiled). */
  memory: z.object({ full: z.int().positive(), least: z.int().positive() }),
});
export type PrecisionChoice = z.output<typeof precisionChoiceSchema>;

/**
 * A model as Kinora lists it: where its files are and what it is made for.
 *
 * A bundled model has a `base`, a folder in the diffusers layout (`model_index.json`, `transformer/`,
 * `vae/`, …) relative to the manifest. A model with `sources` is fetched from the hub and kept in the
 * browser; its `base`, if any, holds copies of the config files only. Architecture and every dimension
 * come from the config files.
 */
export const manifestSchema = z.object({
  id: z.string().regex(/^[a-z0-9][a-z0-9._-]*$/),
  name: z.string().min(1),
  description: z.string(),
  /** Name of the model family, whose code runs it. */
  family: z.string().min(1).default(defaultFamily),
  licence: z.object({ name: z.string(), url: z.url().optional() }),
  base: z.string().min(1).optional(),
  sources: z.array(componentSourceSchema).default([]),
  /** The size at which the model runs for each requested size. */
  nativeSizes: z.object({ [sizes[0]]: nativeSize, [sizes[1]]: nativeSize }),
  /** Longest clip in frames, 4n+1; longer videos are chained. */
  maxClipFrames: z.int().refine((n) => n > 4 && n % 4 === 1, { message: 'must be 4n+1' }),
  /** The default of `choices`; for a bundled model, how its linear weights are held on the device. */
  precision: z.enum(precisions).default('f32'),
  choices: z.array(precisionChoiceSchema).default([]),
  defaults: z.object({ num_inference_steps: z.int().min(1).max(40).optional() }).default({}),
  /** What each variant means for this model. */
  profiles: profilesSchema.prefault({}),
});

export type ModelManifest = z.output<typeof manifestSchema>;

/** The sources of one precision choice, in the order of {@link componentIds}. */
export function sourcesFor(manifest: ModelManifest, precision: Precision): ComponentSource[] {
  return manifest.sources
    .filter((source) => source.precision === undefined || source.precision === precision)
    .sort((a, b) => componentIds.indexOf(a.component) - componentIds.indexOf(b.component));
}

/**
 * Checks a manifest.
 *
 * @throws KinoraError `MODEL_MANIFEST_INVALID` naming the first wrong field
 */
export function parseManifest(input: unknown): ModelManifest {
  const parsed = manifestSchema.safeParse(input);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new KinoraError(
    'MODEL_MANIFEST_INVALID',
    `The model manifest is not valid at ${issue?.path.join('.') || 'its root'}: ${issue?.message}.`,
  );
}

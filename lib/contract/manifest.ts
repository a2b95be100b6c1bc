import { z } from 'zod';
import { KinoraError } from './errors';
import { componentIdsOf, precisions } from './manifest-parts';
import { numberSchemas } from './parameter-schemas';
import { maxPromptLength, mostFramesPerSecond } from './parameters';
import { magCacheSchema, nativeSizesSchema, profilesSchema } from './profile';

const rgb = z.tuple([z.number(), z.number(), z.number()]);

export const licenceSchema = z.object({ name: z.string(), url: z.url().optional() });
export type Licence = z.output<typeof licenceSchema>;

/** One file of a repository on the hub. */
const sourceFileSchema = z.object({
  /** `owner/name` */
  repository: z.string().regex(/^[\w.-]+\/[\w.-]+$/),
  /** Path inside the repository. A configuration file is stored under the same path. */
  path: z.string().min(1),
  /** Branch, tag or commit. */
  revision: z.string().min(1).default('main'),
  /** Expected size in bytes; the size that the hub reports takes precedence. */
  bytes: z.int().positive().optional(),
  /** Expected SHA-256 in hex. */
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .optional(),
});
export type SourceFile = z.output<typeof sourceFileSchema>;

const componentSchema = z.object({
  /** Its folder in the store. */
  id: z.string().regex(/^[a-z][a-z0-9_]*$/),
  /** What a user reads; the app has texts of its own for the ones that it knows. */
  name: z.string().min(1).optional(),
  purpose: z.string().min(1).optional(),
  /** Whether the model runs without it, only slower. */
  faster: z.boolean().default(false),
  /**
   * The precisions in which its linear layers are stored; another one is replaced by the next finer. Without any,
   * its stored form is the same whatever precision is chosen.
   */
  precisions: z.array(z.enum(precisions)).default([]),
  /** The listed model whose component of this name it is, with the same weights: the store keeps one for both. */
  keptWith: z.string().min(1).optional(),
});
export type ModelComponent = z.output<typeof componentSchema>;

const componentSourceSchema = z.object({
  component: z.string().min(1),
  /** The precision that these files are for; absent means all. */
  precision: z.enum(precisions).optional(),
  /** One file, its shards, or the files of the configuration. */
  files: z.array(sourceFileSchema).min(1),
  /** True if the model runs without it; it is then not downloaded with the model. */
  optional: z.boolean().default(false),
  /** Bytes that are fetched, where only the tensors of a part of the file are needed. */
  fetched: z.int().positive().optional(),
  /** Licence of these files; that of the model when absent. */
  licence: licenceSchema.optional(),
});
export type ComponentSource = z.output<typeof componentSourceSchema>;

const checkerFile = (path: string): SourceFile => ({
  repository: 'Marqo/nsfw-image-detection-384',
  path,
  revision: '0c26ec22111b83f106d72a55f611ec35962bcb65',
});

/** The safety checker of manifests that name none: every model has one. */
export const defaultSafetyChecker: ComponentSource = {
  component: 'safety_checker',
  files: [checkerFile('config.json'), checkerFile('model.safetensors')],
  optional: false,
  licence: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
};

/** Device memory in bytes: with all weights resident, and the minimum (streamed blocks, tiled VAE). */
const memoryNeedSchema = z.object({ full: z.int().positive(), least: z.int().positive() });
export type MemoryNeed = z.output<typeof memoryNeedSchema>;

const precisionChoiceSchema = z.object({
  precision: z.enum(precisions),
  /** Short label, such as "8-bit". */
  name: z.string().min(1),
  description: z.string().default(''),
  /** By profile, as `npm run plan` counts it. */
  memory: z.object({ standard: memoryNeedSchema, 'ultra-fast': memoryNeedSchema }),
  /** About how many bytes are fetched, with the default adapter: known before the hub is asked. */
  download: z.int().positive().optional(),
});
export type PrecisionChoice = z.output<typeof precisionChoiceSchema>;

/**
 * A model of Kinora's list: where its files are, and the sizes and settings that it supports.
 *
 * Each has a source for the safety checker. A bundled model has no other, but a `base`, a folder in the
 * diffusers layout (`model_index.json`, `transformer/`, `vae/`, …) relative to the manifest. A model with
 * `sources` is downloaded from the hub and stored in the browser; its `base`, if any, contains only copies
 * of the config files. Architecture and dimensions are read from the config files. `files` names all that
 * lie in `base`, so that nobody asks a server for one that is not there.
 */
export const manifestSchema = z.object({
  id: z.string().regex(/^[a-z0-9][a-z0-9._-]*$/),
  name: z.string().min(1),
  description: z.string(),
  /** Name of the model family, whose code runs it. */
  family: z.string().min(1),
  licence: licenceSchema,
  base: z.string().min(1).optional(),
  files: z.array(z.string().min(1)).optional(),
  sources: z.array(componentSourceSchema).default([]),
  /** The parts with weights of its own, in the order in which they are fetched. */
  components: z.array(componentSchema).default([]),
  /** The size at which the model computes, for each requested size, unless a profile has others. */
  nativeSizes: nativeSizesSchema,
  framesPerSecond: z.int().min(1).max(mostFramesPerSecond),
  /** Frames of a clip are one more than a multiple of it. */
  frameStride: z.int().min(1),
  /** Longest clip in frames; longer videos are made of several clips. */
  maxClipFrames: z.int().min(2),
  /** How a clip goes on from the one before, and a video from a finished one. */
  continuation: z
    .object({
      /** Latent frames of the clip before that the next one holds where it keeps the motion; 0 where it cannot. */
      latents: z.int().min(0).max(3).default(0),
      /** Whether it keeps the motion where nobody chooses; else it starts from the last picture alone. */
      keepsMotion: z.boolean().default(false),
      /**
       * What makes latent frames of a finished video's frames: the clip (when absent), or one picture for each, for a VAE that was
       * trained on pictures.
       */
      encodes: z.enum(['clip', 'pictures']).optional(),
    })
    .prefault({}),
  /** Default precision of `choices`; for a bundled model, its precision on the device. */
  precision: z.enum(precisions).default('f32'),
  choices: z.array(precisionChoiceSchema).default([]),
  /** Colours of latents, for previews: red, green and blue from −1 to 1 are `bias` plus these factors of channels. */
  preview: z.object({ bias: rgb, channels: z.record(z.string().regex(/^\d+$/), rgb) }).optional(),
  /** What a form and the command line begin with, where it differs from `parameterRanges`. */
  defaults: z
    .object({
      num_inference_steps: numberSchemas.num_inference_steps.optional(),
      guidance_scale: numberSchemas.guidance_scale.optional(),
      flow_shift: numberSchemas.flow_shift.optional(),
      /** The negative prompt that its makers use. The API does not use it: without one, a request has none. */
      negative_prompt: z.string().max(maxPromptLength).optional(),
    })
    .default({}),
  /** Calibration of MagCache; every step is computed where it is absent. */
  magcache: magCacheSchema.optional(),
  /** The settings of each variant for this model. */
  profiles: profilesSchema.prefault({}),
});

export type ModelManifest = z.output<typeof manifestSchema>;

/**
 * Checks a manifest. One that names no safety checker gets {@link defaultSafetyChecker}.
 *
 * @throws KinoraError `MODEL_MANIFEST_INVALID` naming the first wrong field
 */
export function parseManifest(input: unknown): ModelManifest {
  const parsed = manifestSchema.safeParse(input);
  if (parsed.success) {
    const { sources, maxClipFrames, frameStride } = parsed.data;
    const known = componentIdsOf(parsed.data);
    const unknown = sources.findIndex(({ component }) => !known.includes(component));
    if (unknown >= 0) {
      throw invalid(`sources.${unknown}.component`, `must be one of ${known.join(', ')}`);
    }
    if ((maxClipFrames - 1) % frameStride !== 0) {
      throw invalid('maxClipFrames', `must be one more than a multiple of ${frameStride}`);
    }
    const named = sources.some(({ component }) => component === 'safety_checker');
    return named ? parsed.data : { ...parsed.data, sources: [...sources, defaultSafetyChecker] };
  }
  const issue = parsed.error.issues[0];
  throw invalid(issue?.path.join('.') || 'its root', issue?.message ?? '');
}

function invalid(field: string, what: string): KinoraError {
  const sentence = `The model manifest is not valid at ${field}: ${what}.`;
  return new KinoraError('MODEL_MANIFEST_INVALID', sentence);
}

import { z } from 'zod';
import { KinoraError } from './errors';
import { type FewStepAdapter, magCacheSchema, type Profiles, profilesSchema } from './profile';
import { sizes } from './request';

const nativeSize = z.object({
  width: z.int().positive().multipleOf(32),
  height: z.int().positive().multipleOf(32),
});

/** The model family of manifests and reference data that name none. */
export const defaultFamily = 'wan22';

/** Precision of linear layers on the device: float32, or quantised in blocks of 32 with one scale. */
export const precisions = ['f32', 'int8', 'int4'] as const;
export type Precision = (typeof precisions)[number];

/**
 * The parts of a model that are downloaded and stored separately. `configuration` has all small files:
 * the config.json of each component and the files of scheduler and tokenizer. `adapter` is a LoRA of the
 * model itself, which a profile of few steps needs. `language_model` is the only part of a tool.
 */
export const componentIds = [
  'configuration',
  'transformer',
  'text_encoder',
  'vae',
  'tiny_decoder',
  'adapter',
  'safety_checker',
  'language_model',
] as const;
export type ComponentId = (typeof componentIds)[number];

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

const componentSourceSchema = z.object({
  component: z.enum(componentIds),
  /** The precision that these files are for; absent means all. */
  precision: z.enum(precisions).optional(),
  /** One file, its shards, or the files of the configuration. */
  files: z.array(sourceFileSchema).min(1),
  /** True if the model runs without it; it is then not downloaded with the model. */
  optional: z.boolean().default(false),
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

const precisionChoiceSchema = z.object({
  precision: z.enum(precisions),
  /** Short label, such as "8-bit". */
  name: z.string().min(1),
  description: z.string().default(''),
  /** Device memory in bytes: with all weights resident, and the minimum (streamed blocks, tiled VAE). */
  memory: z.object({ full: z.int().positive(), least: z.int().positive() }),
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
  family: z.string().min(1).default(defaultFamily),
  licence: licenceSchema,
  base: z.string().min(1).optional(),
  files: z.array(z.string().min(1)).optional(),
  sources: z.array(componentSourceSchema).default([]),
  /** The size at which the model computes, for each requested size. */
  nativeSizes: z.object({ [sizes[0]]: nativeSize, [sizes[1]]: nativeSize }),
  /** Longest clip in frames, 4n+1; longer videos are made of several clips. */
  maxClipFrames: z.int().refine((n) => n > 4 && n % 4 === 1, { message: 'must be 4n+1' }),
  /** Default precision of `choices`; for a bundled model, its precision on the device. */
  precision: z.enum(precisions).default('f32'),
  choices: z.array(precisionChoiceSchema).default([]),
  defaults: z.object({ num_inference_steps: z.int().min(1).max(40).optional() }).default({}),
  /** The negative prompt that its makers use. It is offered, and never used unasked. */
  negativePrompt: z.string().min(1).optional(),
  /** Calibration of MagCache; steps are reused by EasyCache where it is absent. */
  magcache: magCacheSchema.optional(),
  /** What each variant means for this model. */
  profiles: profilesSchema.prefault({}),
});

export type ModelManifest = z.output<typeof manifestSchema>;

/**
 * Which of a model's adapters is downloaded: `owner/name/path` of its file on the hub. Null is none of
 * them, undefined the first.
 */
export type AdapterChoice = string | null | undefined;

/** The sources of one precision choice, in the order of {@link componentIds}: one adapter at most. */
export function sourcesFor(
  manifest: Pick<ModelManifest, 'sources'>,
  precision: Precision,
  adapter?: AdapterChoice,
): ComponentSource[] {
  const chosen = adapterSource(manifest, adapter);
  return manifest.sources
    .filter((source) => source.precision === undefined || source.precision === precision)
    .filter((source) => source.component !== 'adapter' || source === chosen)
    .sort((a, b) => componentIds.indexOf(a.component) - componentIds.indexOf(b.component));
}

/** The source of the chosen adapter; the first one's where the manifest does not have it any more. */
function adapterSource(
  { sources }: Pick<ModelManifest, 'sources'>,
  adapter: AdapterChoice,
): ComponentSource | undefined {
  if (adapter === null) return undefined;
  const adapters = sources.filter(({ component }) => component === 'adapter');
  return adapters.find((source) => adapterPath(source) === adapter) ?? adapters[0];
}

/** A few-step adapter that can be downloaded with a model. */
export interface AdapterOffer {
  readonly choice: string;
  readonly adapter: FewStepAdapter;
  /** Of its file; that of the profile where the source names none. */
  readonly licence: Licence;
}

/** The few-step adapters that a model's sources and its profile have, the default first. */
export function adapterOffers({
  sources,
  profiles,
}: Pick<ModelManifest, 'sources'> & { readonly profiles?: Profiles }): AdapterOffer[] {
  const adapters = profiles?.['ultra-fast'].adapters ?? [];
  return sources
    .filter(({ component }) => component === 'adapter')
    .flatMap((source) => {
      const choice = adapterPath(source);
      const adapter = adapters.find(({ repository, path }) => `${repository}/${path}` === choice);
      return adapter ? [{ choice, adapter, licence: source.licence ?? adapter.licence }] : [];
    });
}

/** The {@link AdapterChoice} that stands for an adapter's source. */
export function adapterPath({ files: [file] }: Pick<ComponentSource, 'files'>): string {
  return `${file?.repository}/${file?.path}`;
}

/** Whether the manifest says where the model's own files are: the safety checker alone is no model. */
export function hasSources({ sources }: Pick<ModelManifest, 'sources'>): boolean {
  return sources.some(({ component }) => component !== 'safety_checker');
}

/** The bundled demonstration model: the only one that may run without a safety checker. */
export const demonstrationModel = 'tiny';

/** Whether the whole model comes with Kinora, apart from the safety checker. */
export function isBundled(manifest: Pick<ModelManifest, 'base' | 'sources'>): boolean {
  return manifest.base !== undefined && !hasSources(manifest);
}

/** The licences of a model, its own first, each with the repositories of its files. */
export function licencesOf({
  licence: own,
  sources,
}: Pick<ModelManifest, 'licence' | 'sources'>): { licence: Licence; repositories: string[] }[] {
  const found = new Map<string, { licence: Licence; repositories: Set<string> }>();
  for (const { licence = own, files } of [{ files: [] }, ...sources]) {
    const key = JSON.stringify([licence.name, licence.url]);
    const entry = found.get(key) ?? { licence, repositories: new Set() };
    for (const { repository } of files) entry.repositories.add(repository);
    found.set(key, entry);
  }
  return [...found.values()].map(({ licence, repositories }) => ({
    licence,
    repositories: [...repositories],
  }));
}

/**
 * Checks a manifest. One that names no safety checker gets {@link defaultSafetyChecker}.
 *
 * @throws KinoraError `MODEL_MANIFEST_INVALID` naming the first wrong field
 */
export function parseManifest(input: unknown): ModelManifest {
  const parsed = manifestSchema.safeParse(input);
  if (parsed.success) {
    const { sources } = parsed.data;
    const named = sources.some(({ component }) => component === 'safety_checker');
    return named ? parsed.data : { ...parsed.data, sources: [...sources, defaultSafetyChecker] };
  }
  const issue = parsed.error.issues[0];
  throw new KinoraError(
    'MODEL_MANIFEST_INVALID',
    `The model manifest is not valid at ${issue?.path.join('.') || 'its root'}: ${issue?.message}.`,
  );
}

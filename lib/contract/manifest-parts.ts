import type { ComponentSource, Licence, ModelManifest } from './manifest';
import type { FewStepAdapter, Profiles } from './profile';

/** Precision of linear layers on the device: float32, or quantised in blocks of 32 with one scale. */
export const precisions = ['f32', 'int8', 'int4'] as const;
export type Precision = (typeof precisions)[number];

/**
 * A part of a model that is downloaded and stored separately: one of the manifest's `components`, or one that
 * is the same for every model. `configuration` has all small files: the config.json of each component and
 * the files of scheduler and tokenizer. `adapter` is a LoRA of the model itself, which a profile of few steps
 * needs. The only part of a tool is
 * `language_model` or `interpolator`.
 */
export type ComponentId = string;

/** The parts of a model, in the order in which they are shown and fetched. */
export function componentIdsOf({ components }: Pick<ModelManifest, 'components'>): ComponentId[] {
  const own = components.map(({ id }) => id);
  return ['configuration', ...own, 'adapter', 'safety_checker'];
}

/** Parts that make videos faster: where one cannot be had, the others are fetched all the same. */
export function isFaster(
  { components }: Pick<ModelManifest, 'components'>,
  component: ComponentId,
): boolean {
  return component === 'adapter' || components.some(({ id, faster }) => faster && id === component);
}

/**
 * Which of a model's adapters is downloaded: `owner/name/path` of its file on the hub. Null is none of
 * them, undefined the first.
 */
export type AdapterChoice = string | null | undefined;

/** The sources of one precision choice: one adapter at most. */
export function sourcesFor(
  manifest: Pick<ModelManifest, 'sources'>,
  precision: Precision,
  adapter?: AdapterChoice,
): ComponentSource[] {
  const chosen = adapterSource(manifest, adapter);
  return manifest.sources
    .filter((source) => source.precision === undefined || source.precision === precision)
    .filter((source) => source.component !== 'adapter' || source === chosen);
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

/** The bundled demonstration model, with which the commands start. */
export const demonstrationModel = 'mini';

/** A model with random weights: material of tests, in no list that a user sees. */
export const fixtureModel = 'tiny';

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

/** Parts of tools that finish videos: a network that puts frames between frames. Each is one safetensors file. */
export const finisherParts = ['interpolator'] as const;
export type FinisherPart = (typeof finisherParts)[number];

/** The part that a tool is. */
export function partOfTool({ sources }: Pick<ModelManifest, 'sources'>): ComponentId {
  // One that was added from this computer has no source, and is a language model.
  return sources[0]?.component ?? 'language_model';
}

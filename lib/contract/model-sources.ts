import type { ComponentSource, Licence, ModelManifest } from './manifest';
import { type AdapterPart, adapterParts, type ComponentId, type Precision } from './manifest-parts';
import type { AdapterFile, FewStepAdapter, ProfileAdapter, Profiles } from './profile';

/** Parts that are fetched only where they were chosen. */
const chosenParts: readonly ComponentId[] = [...adapterParts, 'light_decoder'];

/**
 * Which of a model's adapters, and of its other parts that have to be chosen, are downloaded: `owner/name/path` of
 * their files on the hub. Absent, it is the first one for few steps.
 */
export type AdapterChoices = readonly string[];

/** A manifest as far as it says which adapters there are; tools have no profiles. */
type WithAdapters = Pick<ModelManifest, 'sources'> & { readonly profiles?: Profiles };

/** The sources of one precision choice: one of each kind of adapter at most. */
export function sourcesFor(
  manifest: WithAdapters,
  precision: Precision,
  chosen?: AdapterChoices,
): ComponentSource[] {
  const adapters = adapterSources(manifest, chosen);
  return manifest.sources
    .filter((source) => source.precision === undefined || source.precision === precision)
    .filter((source) => !chosenParts.includes(source.component) || adapters.includes(source));
}

/** Whether a part belongs to a download with these adapters. */
export function isWanted(
  manifest: WithAdapters,
  component: ComponentId,
  chosen?: AdapterChoices,
): boolean {
  const adapters = adapterSources(manifest, chosen);
  const isChosen = adapters.some((source) => source.component === component);
  return isChosen || !chosenParts.includes(component);
}

/** The sources of the chosen adapters, and of those that have to run beside them. */
function adapterSources(
  { sources, profiles }: WithAdapters,
  chosen?: AdapterChoices,
): ComponentSource[] {
  const adapters = sources.filter(({ component }) => chosenParts.includes(component));
  const find = (choice: string) => adapters.find((source) => adapterPath(source) === choice);
  const first = adapters.find(({ component }) => component === 'adapter');
  const known = chosen?.filter(find) ?? [];
  // The first one stands in where the manifest has none of the chosen ones any more.
  const usesFirst = !chosen || (chosen.length > 0 && known.length === 0);
  const paths = usesFirst && first ? [adapterPath(first)] : known;
  const beside = profiles?.['ultra-fast'].adapters
    .filter((adapter) => paths.includes(pathOf(adapter)))
    .flatMap(({ guidanceAdapter }) => (guidanceAdapter ? [pathOf(guidanceAdapter)] : []));
  return chosenParts.flatMap((part) => {
    const chosenSources = [...paths, ...(beside ?? [])].flatMap((path) => find(path) ?? []);
    return chosenSources.find(({ component }) => component === part) ?? [];
  });
}

/** An adapter that can be downloaded with a model. */
export interface AdapterOffer<Adapter extends ProfileAdapter = ProfileAdapter> {
  readonly choice: string;
  readonly adapter: Adapter;
  /** Licence of its file; that of the profile where the source names none. */
  readonly licence: Licence;
}

/** The few-step adapters that a model's sources and its profile have, the default first. */
export function adapterOffers(manifest: WithAdapters): AdapterOffer<FewStepAdapter>[] {
  const adapters = manifest.profiles?.['ultra-fast'].adapters ?? [];
  return adapters.flatMap((adapter) => offersOf(manifest, 'adapter', adapter));
}

/** The guidance adapters that a model's sources and its standard profile have: one, or none. */
export function guidanceOffers(manifest: WithAdapters): AdapterOffer[] {
  const adapter = manifest.profiles?.standard.guidanceAdapter;
  return adapter ? offersOf(manifest, 'guidance_adapter', adapter) : [];
}

/** The light decoder of a model, by the name under which a command takes it: one, or none. */
export function decoderOffers({ sources }: WithAdapters) {
  const offered = sources.filter(({ component }) => component === 'light_decoder');
  return offered.map((source) => ({ choice: adapterPath(source), adapter: { name: 'light' } }));
}

function offersOf<Adapter extends ProfileAdapter>(
  { sources }: WithAdapters,
  part: AdapterPart,
  adapter: Adapter,
): AdapterOffer<Adapter>[] {
  const choice = pathOf(adapter);
  return sources
    .filter((source) => source.component === part && adapterPath(source) === choice)
    .map((source) => ({ choice, adapter, licence: source.licence ?? adapter.licence }));
}

/** The key of an adapter's source in {@link AdapterChoices}. */
export function adapterPath({ files: [file] }: Pick<ComponentSource, 'files'>): string {
  return file ? pathOf(file) : '';
}

function pathOf({ repository, path }: Pick<AdapterFile, 'repository' | 'path'>): string {
  return `${repository}/${path}`;
}

/** Whether an adapter of a profile is the file that a part was made of: `owner/name/path@revision`, or a local name. */
export function isAdapterFile(file: AdapterFile, source: string): boolean {
  return source.startsWith(`${pathOf(file)}@`) || source === file.path.split('/').at(-1);
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
  const licences = new Map<string, { licence: Licence; repositories: Set<string> }>();
  for (const { licence = own, files } of [{ files: [] }, ...sources]) {
    const key = JSON.stringify([licence.name, licence.url]);
    const entry = licences.get(key) ?? { licence, repositories: new Set() };
    for (const { repository } of files) entry.repositories.add(repository);
    licences.set(key, entry);
  }
  return [...licences.values()].map(({ licence, repositories }) => ({
    licence,
    repositories: [...repositories],
  }));
}

/** The part that a tool is. */
export function partOfTool({ sources }: Pick<ModelManifest, 'sources'>): ComponentId {
  // One that was added from this computer has no source, and is a language model.
  return sources[0]?.component ?? 'language_model';
}

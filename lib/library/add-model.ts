import {
  adapterParts,
  at,
  type ComponentId,
  type ComponentSource,
  hasSources,
  isFaster,
  KinoraError,
  type Licence,
  type LocalFile,
  type ModelManifest,
  type ModelSource,
  parseManifest,
  type SourceFile,
  toKinoraError,
} from '../contract';
import type { ModelInstallation, ModelPlan } from '../pipeline/installation';
import { familyOf } from '../pipeline/open';
import { defaultBaseNames, readShardIndex } from '../weights/formats/checkpoint';
import { parseModelJson } from '../weights/formats/source';
import { openTensorFile, type TensorFile } from '../weights/formats/tensor-file';
import {
  type HubAddress,
  type HubClient,
  hubByteSource,
  type Listing,
  parseHubAddress,
} from '../weights/hub';
import { type CheckContext, checkAdded } from './check-added';
import type { ListedModel } from './environment';
import {
  bareName,
  type MatchedFiles,
  matchFiles,
  type OpenedFiles,
  openWeights,
  weightEnding,
} from './local-files';
import {
  adapterConfig,
  filesOf,
  hubFolder,
  licenceOf,
  shareParts,
  unknownLicence,
} from './sources';

/** A manifest that a repository brings itself. */
const ownManifest = 'kinora.json';

/** Dependencies of the look-up when a model is added. */
export interface AddContext extends Omit<CheckContext, 'base'> {
  /** A model of each family, whose parts serve where a source has only some. */
  readonly bases: readonly ListedModel[];
  /** All manifests that come with Kinora: what an added one has in common with them is kept once. */
  readonly listed: readonly ModelManifest[];
  /** Ids that are taken. */
  readonly taken: ReadonlySet<string>;
}

/** The same for one of the families. */
interface FamilyContext extends CheckContext, Pick<AddContext, 'taken' | 'listed'> {
  readonly installation: ModelInstallation;
  /** What tells whose model it is: the weights of local files, the only ones of an address, or a transformer's. */
  readonly headers: readonly TensorFile[];
}

/**
 * The manifest of a model that is to be added, its files looked at: headers and small files only. The models whose
 * files these look like are tried first; where they fit none, the first one's refusal counts.
 *
 * @throws KinoraError `ADDRESS_INVALID`, `MODEL_WRONG_KIND`, `MODEL_CONFIG_INVALID`,
 * `MODEL_FILE_MISSING`, `MODEL_FILE_INVALID`, `TENSOR_…`, and what the hub answers
 */
export async function addedModel(source: ModelSource, context: AddContext): Promise<ModelManifest> {
  const { client, families } = context;
  const found: FoundFiles =
    'files' in source
      ? await openWeights(source.files)
      : await onHub(parseHubAddress(source.address, client.base, source.revision), client);
  const headers = await headersOf(found, client);
  let refusal: unknown = new KinoraError('MODEL_UNKNOWN', 'There is no model to add to.');
  const bases = context.bases.map((base) => {
    const { installation } = familyOf(families, base.manifest);
    const ids = new Set<string | null>(base.manifest.components.map(({ id }) => id));
    const own = headers.filter((header) => {
      const { component, remedy } = installation.recognise(header);
      return remedy !== undefined || ids.has(component);
    });
    return { base, installation, bytes: own.reduce((sum, { file }) => sum + file.size, 0) };
  });
  bases.sort((a, b) => b.bytes - a.bytes);
  for (const [i, { base, installation }] of bases.entries()) {
    try {
      return await addedTo(found, { ...context, base, installation, headers });
    } catch (thrown) {
      if (i === 0) refusal = thrown;
      if (toKinoraError(thrown).code.startsWith('HUB_')) throw thrown;
    }
  }
  throw refusal;
}

/** The manifest of a model whose missing parts are those of one base model. */
async function addedTo(found: FoundFiles, context: FamilyContext): Promise<ModelManifest> {
  const { manifest: made, local } =
    'files' in found
      ? await localManifest(found, context)
      : { manifest: await manifestOf(found, context), local: new Map<ComponentId, LocalFile[]>() };
  const { optionalFiles } = familyOf(context.families, made).installation;
  const configuration =
    local.get('configuration') ?? filesOf(made, 'configuration', made.precision);
  // Parts that the configuration lacks are kept with the weights, and only by this model.
  const isWhole = optionalFiles.every((file) => configuration.some(({ path }) => path === file));
  const manifest = await shareParts(made, context.listed, () => !isWhole);
  try {
    const plan = await checkAdded(manifest, local, context);
    return plan ? await withFittingChoices(manifest, plan, context) : manifest;
  } catch (refusal) {
    await context.models.folder(manifest.id).clear();
    throw refusal;
  }
}

/** The base's choices tell the memory of a model of its own size only. */
async function withFittingChoices(
  manifest: ModelManifest,
  plan: ModelPlan,
  { installation, base }: FamilyContext,
): Promise<ModelManifest> {
  if (!base.base || manifest.choices !== base.manifest.choices) return manifest;
  const basePlan = await installation.plan(base.base);
  const same = base.manifest.components.every(
    ({ id }) => plan.storedBytes(id, 'f32', false) === basePlan.storedBytes(id, 'f32', false),
  );
  return same ? manifest : { ...manifest, choices: [] };
}

/** A repository, and the one file of it that is meant; without one, a manifest or the diffusers layout. */
interface FoundOnHub {
  readonly repository: RepositoryFiles;
  readonly only?: SourceFile;
}
type FoundFiles = FoundOnHub | OpenedFiles;

/** @throws KinoraError `ADDRESS_INVALID`, and what the hub answers */
async function onHub(address: HubAddress, client: HubClient): Promise<FoundOnHub> {
  const listing = await client.list(address.repository, address.revision);
  const repository = new RepositoryFiles(listing, address.revision);
  if (address.kind === 'file') return { repository, only: repository.file(address.path) };
  if (repository.has(ownManifest) || repository.has('model_index.json')) return { repository };
  const weights = [...listing.files.keys()].filter((path) => weightEnding.test(path));
  const [only] = weights;
  if (weights.length === 1 && only) return { repository, only: repository.file(only) };
  throw new KinoraError(
    'ADDRESS_INVALID',
    only === undefined
      ? `${address.repository} has no weights that can be read.`
      : `${address.repository} has ${weights.length} files of weights: name one, such as ${address.repository}/${only}.`,
  );
}

/** The headers by which a model is known; none where its manifest names its family. */
async function headersOf(found: FoundFiles, client: HubClient): Promise<readonly TensorFile[]> {
  if ('files' in found) return found.weights.map(({ header }) => header);
  const { repository, only } = found;
  if (!only && repository.has(ownManifest)) return [];
  const [path] = (!only && (await weightsIn('transformer', repository, client))) || [];
  const file = only ?? (path && repository.file(path));
  return file ? [await openTensorFile(hubByteSource(client, await client.file(file)))] : [];
}

/**
 * The manifest of a model on the hub: its own, or one made of a diffusers repository or of a single file
 * whose other parts come from the base model. Reads headers and small files only.
 *
 * @throws KinoraError `MODEL_WRONG_KIND`, `MODEL_CONFIG_INVALID`, `TENSOR_…`, and what the hub answers
 */
function manifestOf({ repository, only }: FoundOnHub, context: FamilyContext) {
  if (only) return fromFile(only, context);
  return repository.has(ownManifest)
    ? fromOwnManifest(repository, context)
    : fromDiffusers(repository, context);
}

/**
 * The manifest of a model of local files: their parts have no address, the others are the base's. The
 * sizes of its videos are the base's as well, unless a manifest beside the files has others.
 *
 * @throws KinoraError as `matchFiles`
 */
async function localManifest(
  found: OpenedFiles,
  context: FamilyContext,
): Promise<Pick<MatchedFiles, 'local'> & { manifest: ModelManifest }> {
  const own = found.files.find(({ path }) => path.split('/').at(-1) === ownManifest);
  if (own) {
    const manifest = parseManifest(parseModelJson(own.path, await own.file.text()));
    const named = { ...manifest, id: uniqueId(manifest.id, context.taken) };
    // Beside it there may be files of the model, or none.
    if (context.headers.length === 0) return { manifest: named, local: new Map() };
    const { installation } = familyOf(context.families, manifest);
    const { local, leftOut } = matchFiles(found, installation);
    return { manifest: withNote(named, leftOut), local };
  }
  const { local: matched, leftOut } = matchFiles(found, context.installation);
  const [largest = ''] = context.base.manifest.components.map(({ id }) => id);
  const [first] = matched.get(largest) ?? [...matched.values()].flat();
  const folder = first?.path.includes('/') ? first.path.split('/')[0] : undefined;
  const name = folder ?? bareName(first?.path ?? 'model');
  const all = context.base.manifest.sources;
  const ownSizes = matched.has('configuration');
  const sources = all
    .filter(({ component }) => !matched.has(component))
    .map((source) =>
      ownSizes && isFaster(context.base.manifest, source.component)
        ? { ...source, optional: true }
        : source,
    );
  const manifest = derived(name, 'local files', unknownLicence, sources, context);
  return { manifest: withNote(manifest, leftOut), local: matched };
}

/** The description is read where the parts that are not there are offered for download. */
function withNote(manifest: ModelManifest, note: string): ModelManifest {
  return { ...manifest, description: `${manifest.description} ${note}`.trim() };
}

/** Files of one repository as sources. */
class RepositoryFiles {
  constructor(
    readonly listing: Listing,
    readonly revision: string,
  ) {}

  has(path: string): boolean {
    return this.listing.files.has(path);
  }

  file(path: string): SourceFile {
    const { repository } = this.listing;
    if (!this.has(path))
      throw new KinoraError('HUB_NOT_FOUND', `${repository} has no file ${path}.`);
    return { repository, path, revision: this.revision };
  }
}

async function fromOwnManifest(
  files: RepositoryFiles,
  { client, taken }: FamilyContext,
): Promise<ModelManifest> {
  const folder = hubFolder([files.file(ownManifest)], client);
  const { base: _, ...manifest } = parseManifest(await folder.json(ownManifest));
  if (!hasSources(manifest)) {
    const sentence = `${ownManifest} of ${files.listing.repository} names no sources.`;
    throw new KinoraError('MODEL_MANIFEST_INVALID', sentence);
  }
  return { ...manifest, id: uniqueId(manifest.id, taken) };
}

async function fromDiffusers(
  files: RepositoryFiles,
  context: FamilyContext,
): Promise<ModelManifest> {
  const { installation, client, base } = context;
  const { configurationFiles, optionalFiles } = installation;
  const configuration = configurationFiles
    .filter((path) => files.has(path) || !optionalFiles.includes(path))
    .map((path) => files.file(path));
  const sources: ComponentSource[] = [
    { component: 'configuration', files: configuration, optional: false },
  ];
  const own = base.manifest.components.map(({ id }) => id);
  for (const component of [...own, ...adapterParts]) {
    const paths = await weightsIn(component, files, client);
    const optional = isFaster(base.manifest, component);
    if (paths) {
      const config = `${component}/${adapterConfig}`;
      if (files.has(config)) paths.push(config);
      sources.push({ component, files: paths.map((path) => files.file(path)), optional });
    } else if (optional) {
      // Those of the base model need not fit: they are fetched where they are asked for.
      const ofBase = base.manifest.sources.filter((source) => source.component === component);
      sources.push(...ofBase.map((source) => ({ ...source, optional })));
    } else {
      const sentence = `${files.listing.repository} has no weights in ${component}.`;
      throw new KinoraError('MODEL_FILE_MISSING', sentence);
    }
  }
  sources.push(...base.manifest.sources.filter((source) => source.component === 'safety_checker'));
  const { repository } = files.listing;
  const licence = licenceOf(files.listing, client);
  const [, name = repository] = repository.split('/');
  return derived(name, repository, licence, sources, context);
}

/** The weights of a component by diffusers' names: the shards of an index, or one file. */
async function weightsIn(
  component: ComponentId,
  files: RepositoryFiles,
  client: FamilyContext['client'],
): Promise<string[] | null> {
  for (const stem of defaultBaseNames) {
    const single = `${component}/${stem}.safetensors`;
    const index = `${single}.index.json`;
    if (files.has(index)) {
      const json = await hubFolder([files.file(index)], client).json(index);
      const names = new Set(readShardIndex(index, json).values());
      return [...names].sort().map((name) => `${component}/${name}`);
    }
    if (files.has(single)) return [single];
  }
  return null;
}

/** One file of weights in the place of the base model's part. */
async function fromFile(file: SourceFile, context: FamilyContext): Promise<ModelManifest> {
  const { client, base, headers } = context;
  const component = partOf(headers, context.installation);
  const sources = base.manifest.sources.filter((source) => source.component !== component);
  const name = bareName(file.path);
  const all = [...sources, { component, files: [file], optional: false }];
  const licence = licenceOf(await client.list(file.repository, file.revision), client);
  return derived(name, `${file.repository}/${file.path}`, licence, all, context);
}

function partOf(headers: readonly TensorFile[], installation: ModelInstallation): ComponentId {
  const header = at(headers, 0);
  const { name, component, remedy } = installation.recognise(header);
  if (component !== null) return component;
  const sentence = `${header.file.name} is ${name || 'no weights that Kinora knows'}.`;
  throw new KinoraError('MODEL_WRONG_KIND', sentence, { remedy });
}

function derived(
  name: string,
  origin: string,
  licence: Licence,
  sources: readonly ComponentSource[],
  { base, taken }: FamilyContext,
): ModelManifest {
  const { base: _, ...rest } = base.manifest;
  return {
    ...rest,
    id: uniqueId(name, taken),
    name,
    description: `Added from ${origin}.`,
    licence,
    // The licence of the new model is not that of parts that are the base's.
    sources: sources.map((source) =>
      base.manifest.sources.includes(source) ? { licence: rest.licence, ...source } : source,
    ),
  };
}

/** An id of the name's letters that is not taken yet. */
export function uniqueId(name: string, taken: ReadonlySet<string>): string {
  const plain = name.toLowerCase().replaceAll(/[^a-z0-9._-]+/g, '-');
  const id = plain.replace(/^[^a-z0-9]+/, '') || 'model';
  if (!taken.has(id)) return id;
  for (let n = 2; ; n++) if (!taken.has(`${id}-${n}`)) return `${id}-${n}`;
}

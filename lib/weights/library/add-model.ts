import {
  type ComponentId,
  type ComponentSource,
  componentIds,
  KinoraError,
  type LocalFile,
  type ModelManifest,
  parseManifest,
  type SourceFile,
} from '../../contract';
import { type Address, type HubClient, hubByteSource, type Listing } from '../hub';
import { blobFile, parseModelJson } from '../source';
import { openTensorFile, type TensorFile } from '../tensor-file';
import type { Architecture, WeightComponent } from './environment';
import { matchFiles } from './import-files';
import { hubFolder } from './sources';

/** A manifest that a repository brings itself. */
export const ownManifest = 'kinora.json';

const weightComponents = componentIds.filter(
  (component): component is WeightComponent => component !== 'configuration',
);
const weightEnding = /\.(safetensors|gguf|sft)$/i;

/** What adding a model looks things up with. */
export interface AddContext {
  readonly client: HubClient;
  readonly architecture: Architecture;
  /** The model whose parts serve where a source has only some: Wan2.2-TI2V-5B. */
  readonly base: ModelManifest;
  /** Ids that are taken. */
  readonly taken: ReadonlySet<string>;
}

/**
 * The manifest of a model on the hub: its own, or one made of a diffusers repository or of a single file
 * whose other parts come from the base model. Reads headers and small files only.
 *
 * @throws KinoraError `ADDRESS_INVALID`, `MODEL_WRONG_KIND`, `MODEL_CONFIG_INVALID`, `TENSOR_…`, and what
 * the hub answers
 */
export async function manifestOf(address: Address, context: AddContext): Promise<ModelManifest> {
  if (address.kind === 'link') {
    throw new KinoraError(
      'ADDRESS_INVALID',
      `"${address.url}" is not on the hub ${context.client.base}: download the file and choose it.`,
    );
  }
  const listing = await context.client.list(address.repository, address.revision);
  const files = new RepositoryFiles(listing, address.revision);
  if (address.kind === 'file') return fromFile(files.file(address.path), context);
  if (files.has(ownManifest)) return fromOwnManifest(files, context);
  if (files.has('model_index.json')) return fromDiffusers(files, context);
  const weights = [...listing.files.keys()].filter((path) => weightEnding.test(path));
  const [only] = weights;
  if (weights.length === 1 && only !== undefined) return fromFile(files.file(only), context);
  const choice = weights.slice(0, 3).map((path) => `${address.repository}/${path}`);
  throw new KinoraError(
    'ADDRESS_INVALID',
    choice.length === 0
      ? `${address.repository} has no weights that can be read.`
      : `${address.repository} has ${weights.length} files of weights: name one, such as ${choice[0]}.`,
  );
}

/**
 * The manifest of a model of local files: their parts have no address, the others are the base's.
 *
 * @throws KinoraError as `matchFiles`
 */
export async function localManifest(
  files: readonly LocalFile[],
  context: AddContext,
): Promise<ModelManifest> {
  const own = files.find(({ path }) => path === ownManifest || path.endsWith(`/${ownManifest}`));
  if (own) {
    const manifest = parseManifest(parseModelJson(own.path, await own.file.text()));
    return { ...manifest, id: uniqueId(manifest.id, context.taken) };
  }
  const matched = await matchFiles(files, context.architecture);
  for (const [component, locals] of matched) {
    if (component === 'configuration') continue;
    await Promise.all(locals.map(({ path, file }) => openTensorFile(blobFile(path, file))));
  }
  const [first] = matched.get('transformer') ?? [...matched.values()].flat();
  const folder = first?.path.includes('/') ? first.path.split('/')[0] : undefined;
  const name = folder ?? first?.path.replace(weightEnding, '') ?? 'model';
  const sources = context.base.sources.filter(({ component }) => !matched.has(component));
  return derived(name, 'local files', sources, context);
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
    const found = this.listing.files.get(path);
    if (!found) throw new KinoraError('HUB_NOT_FOUND', `${repository} has no file ${path}.`);
    return { repository, path, revision: this.revision };
  }
}

async function fromOwnManifest(
  files: RepositoryFiles,
  { client, taken }: AddContext,
): Promise<ModelManifest> {
  const folder = hubFolder([files.file(ownManifest)], client);
  const { base: _, ...manifest } = parseManifest(await folder.json(ownManifest));
  if (manifest.sources.length === 0) {
    const sentence = `${ownManifest} of ${files.listing.repository} names no sources.`;
    throw new KinoraError('MODEL_MANIFEST_INVALID', sentence);
  }
  return { ...manifest, id: uniqueId(manifest.id, taken) };
}

async function fromDiffusers(files: RepositoryFiles, context: AddContext): Promise<ModelManifest> {
  const { architecture, client, base } = context;
  const configuration = architecture.configurationFiles.map((path) => files.file(path));
  const sources: ComponentSource[] = [{ component: 'configuration', files: configuration }];
  await architecture.plan(hubFolder(configuration, client));
  for (const component of weightComponents) {
    const paths = await weightsIn(component, files, client);
    if (paths) sources.push({ component, files: paths.map((path) => files.file(path)) });
    else if (component === 'tiny_decoder') {
      sources.push(...base.sources.filter((source) => source.component === component));
    } else {
      const sentence = `${files.listing.repository} has no weights in ${component}.`;
      throw new KinoraError('MODEL_FILE_MISSING', sentence);
    }
  }
  return derived(nameOf(files.listing.repository), files.listing.repository, sources, context);
}

/** The weights of a component by diffusers' names: one file, or the shards of an index. */
async function weightsIn(
  component: ComponentId,
  files: RepositoryFiles,
  client: HubClient,
): Promise<readonly string[] | null> {
  for (const stem of ['diffusion_pytorch_model', 'model']) {
    const single = `${component}/${stem}.safetensors`;
    if (files.has(single)) return [single];
    const index = `${single}.index.json`;
    if (!files.has(index)) continue;
    const json = await hubFolder([files.file(index)], client).json(index);
    const map = typeof json === 'object' && json !== null && Reflect.get(json, 'weight_map');
    const shards = typeof map === 'object' && map !== null ? Object.values(map) : [];
    const names = new Set(shards.filter((shard) => typeof shard === 'string'));
    if (names.size === 0) {
      throw new KinoraError('MODEL_FILE_INVALID', `${index} names no files.`);
    }
    return [...names].sort().map((name) => `${component}/${name}`);
  }
  return null;
}

/** One file of weights in the place of the base model's part. */
async function fromFile(file: SourceFile, context: AddContext): Promise<ModelManifest> {
  const { client, base, architecture } = context;
  const header = await openTensorFile(hubByteSource(client, await client.file(file)));
  const component = partOf(header, architecture);
  const sources = base.sources.filter((source) => source.component !== component);
  const name = file.path.split('/').at(-1)?.replace(weightEnding, '') ?? file.path;
  const all = [...sources, { component, files: [file] }];
  return derived(name, `${file.repository}/${file.path}`, all, context);
}

function partOf(header: TensorFile, architecture: Architecture): ComponentId {
  const { name, component } = architecture.recognise(header);
  if (component !== null) return component;
  const what = name === '' ? 'no weights that Kinora knows' : name;
  throw new KinoraError('MODEL_WRONG_KIND', `${header.file.name} is ${what}.`);
}

function derived(
  name: string,
  origin: string,
  sources: readonly ComponentSource[],
  { base, taken }: AddContext,
): ModelManifest {
  const { base: _, ...rest } = base;
  return {
    ...rest,
    id: uniqueId(name, taken),
    name,
    description: `Added from ${origin}.`,
    licence: { name: 'See its source' },
    sources: [...sources],
  };
}

function nameOf(repository: string): string {
  return repository.split('/')[1] ?? repository;
}

/** An id of the name's letters that is not taken yet. */
export function uniqueId(name: string, taken: ReadonlySet<string>): string {
  const plain = name.toLowerCase().replaceAll(/[^a-z0-9._-]+/g, '-');
  const id = plain.replace(/^[^a-z0-9]+/, '') || 'model';
  if (!taken.has(id)) return id;
  for (let n = 2; ; n++) if (!taken.has(`${id}-${n}`)) return `${id}-${n}`;
}

import { type ComponentId, KinoraError, type LocalFile } from '../contract';
import type { ModelInstallation } from '../pipeline/installation';
import { defaultBaseNames, readShardIndex } from '../weights/formats/checkpoint';
import { type ByteSource, isHidden, parseModelJson } from '../weights/formats/source';
import { openTensorFile, type TensorFile } from '../weights/formats/tensor-file';
import { localByteSource } from '../weights/hub';

/** Local files that serve instead of the hub. */
export type LocalFiles = ReadonlyMap<ComponentId, readonly LocalFile[]>;

/** Begins the identity of every local file: nothing on a hub is called so. */
const prefix = 'local:';

/**
 * A picked or dropped file, to be read once. It is the same file wherever it lies, as long as its name,
 * size and date are.
 */
export function localSource(local: LocalFile): ByteSource {
  const { size, lastModified } = local.file;
  const identity = `${prefix}${nameOf(local.path)}:${size}:${lastModified}`;
  return { ...localByteSource(local), identity };
}

/** Whether a source, by its identity, is a local file. */
export function isLocal({ identity }: Pick<ByteSource, 'identity'>): boolean {
  return identity.startsWith(prefix);
}

/** The error for a download that came from local files, which a worker has not after its start. */
export function chooseAgain(names: readonly string[]): KinoraError {
  const list = names.map((name) => `"${nameOf(name)}"`).join(', ');
  const what = names.length > 1 ? 'files' : 'file';
  return new KinoraError('FILE_UNREADABLE', `This comes from your ${what} ${list}.`, {
    remedy: `Choose the ${what} again: it goes on where it stopped.`,
  });
}

function nameOf(path: string): string {
  return path.slice(folderOf(path).length);
}

/** The folders of a path, the last slash included. */
function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/') + 1);
}

/** Endings of files of weights that are read. */
export const weightEnding = /\.(safetensors|gguf|sft)$/i;
/** Weights in a form that is not read: to be named, not passed over. */
const foreignEnding = /\.(ckpt|pth|pt|bin|msgpack|onnx)$/i;

/** The name of a file of weights without its ending. */
export function bareName(path: string): string {
  return nameOf(path).replace(weightEnding, '');
}

/** A local file of weights, its header read. */
interface LocalWeights extends LocalFile {
  readonly header: TensorFile;
  /** What the shards of one file have in common: their index, or their names but for the numbers. */
  readonly series: string;
  /** If several files in a folder have the same tensors, the lowest one counts. */
  readonly rank: number;
}

/** The picked files, without hidden ones. */
export interface OpenedFiles {
  readonly files: readonly LocalFile[];
  /** Those first that are meant where a folder has several forms of a part. */
  readonly weights: readonly LocalWeights[];
}

/**
 * Opens the weights among local files: what an index names is meant, then the plain name, as for the hub.
 *
 * @throws KinoraError as `openTensorFile`, `FILE_UNREADABLE` for none, `MODEL_FILE_MISSING` for shards that an index names
 */
export async function openWeights(picked: readonly LocalFile[]): Promise<OpenedFiles> {
  const files = picked.filter(({ path }) => !isHidden(path));
  if (files.length === 0) {
    const sentence = 'There were no files. A browser passes over symbolic links.';
    const remedy = 'Choose the folder where the files themselves lie.';
    throw new KinoraError('FILE_UNREADABLE', sentence, { remedy });
  }
  const indexes = new Map<string, string>();
  for (const { path, file } of files) {
    if (!path.endsWith('.safetensors.index.json')) continue;
    const shards = [...readShardIndex(path, parseModelJson(path, await file.text())).values()];
    const paths = new Set(shards.map((shard) => folderOf(path) + shard));
    const missing = [...paths].filter((shard) => !files.some((file) => file.path === shard));
    if (missing.length === paths.size) continue;
    const [first] = missing;
    if (first)
      throw new KinoraError('MODEL_FILE_MISSING', `${first}, named by ${path}, is missing.`);
    for (const shard of paths) indexes.set(shard, path);
  }
  const opening = files
    .filter(({ path }) => weightEnding.test(path))
    .map(async (local): Promise<LocalWeights> => {
      const { path } = local;
      const index = indexes.get(path);
      const base = nameOf(index ?? path).replace(/\.safetensors(\.index\.json)?$/, '');
      const plain = defaultBaseNames.some((name) => name === base);
      return {
        ...local,
        header: await openTensorFile(localSource(local)),
        series: index ?? path.replace(/\d+/g, ''),
        rank: (plain ? 0 : 2) + (index === undefined ? 1 : 0),
      };
    });
  const weights = await Promise.all(opening);
  weights.sort((a, b) => a.rank - b.rank || (a.path < b.path ? -1 : 1));
  return { files, weights };
}

/** Local files by the parts of a model that they are. */
export interface MatchedFiles {
  readonly local: LocalFiles;
  /** A sentence that names the others, each with what it is; empty where there are none. */
  readonly leftOut: string;
}

/**
 * Matches local files to the parts of a model: weights by what they hold, whatever they are called, and
 * the configuration by its paths inside the picked folder.
 *
 * @throws KinoraError `MODEL_WRONG_KIND` naming each file that is no part of the model, or two that are the same
 * part; `MODEL_FILE_MISSING` when none is
 */
export function matchFiles(
  { files, weights: opened }: OpenedFiles,
  installation: ModelInstallation,
): MatchedFiles {
  const matched = new Map<ComponentId, LocalWeights[]>();
  const wrong = files
    .filter(({ path }) => foreignEnding.test(path))
    .map(({ path }) => ({ path, what: 'not safetensors or GGUF' }));
  for (const weights of opened) {
    const { path } = weights;
    const { name, component, remedy } = installation.recognise(weights.header);
    if (remedy) throw new KinoraError('MODEL_WRONG_KIND', `${path} is ${name}.`, { remedy });
    const others = component === null ? [] : (matched.get(component) ?? []);
    const rival = others.find((other) => !areShards(other, weights));
    if (component === null) {
      wrong.push({ path, what: name || 'unknown weights' });
    } else if (!rival) {
      matched.set(component, [...others, weights]);
    } else if (folderOf(rival.path) === folderOf(path) && rival.rank < weights.rank) {
      wrong.push({ path, what: `another form of ${nameOf(rival.path)}` });
    } else {
      const sentence = `${rival.path} and ${path} are both ${name}, the part "${component}".`;
      throw new KinoraError('MODEL_WRONG_KIND', sentence, { remedy: 'Choose one of them.' });
    }
  }
  // In a picked folder there may be more than this model; what was picked by itself is meant.
  const named = matched.size === 0 ? wrong : wrong.filter(({ path }) => !path.includes('/'));
  if (named.length > 0) {
    const verb = named.length > 1 ? 'are' : 'is';
    throw new KinoraError('MODEL_WRONG_KIND', `${listOf(named)} ${verb} no part of this model.`);
  }
  const local = new Map<ComponentId, LocalFile[]>(matched);
  for (const all of local.values()) all.sort((a, b) => (a.path < b.path ? -1 : 1));
  const { configuration, lacking } = configurationIn(files, installation);
  if (lacking.length === 0) local.set('configuration', configuration);
  else if (configuration.length > 0) {
    const path = configuration.map((one) => one.path).join(', ');
    wrong.push({ path, what: `no configuration without ${lacking.join(', ')}` });
  }
  if (local.size === 0) {
    const sentence = 'None of these files is a part of the model.';
    throw new KinoraError('MODEL_FILE_MISSING', sentence);
  }
  return { local, leftOut: wrong.length > 0 ? `Left out: ${listOf(wrong)}.` : '' };
}

/** Whether two files of a component are shards of one. */
function areShards(one: LocalWeights, other: LocalWeights): boolean {
  const names = [...other.header.tensors.keys()];
  return one.series === other.series && names.every((name) => !one.header.tensors.has(name));
}

function listOf(files: readonly { readonly path: string; readonly what: string }[]): string {
  return files.map(({ path, what }) => `${path} (${what})`).join(', ');
}

/** The files of the configuration under the paths by which it is kept, and what it needs and is not there. */
function configurationIn(
  files: readonly LocalFile[],
  { configurationFiles, optionalFiles }: ModelInstallation,
): { readonly configuration: LocalFile[]; readonly lacking: string[] } {
  const configuration: LocalFile[] = [];
  const lacking: string[] = [];
  for (const path of configurationFiles) {
    // A picked folder's own name comes before the paths inside it.
    const local = files.find((file) => file.path === path || file.path.endsWith(`/${path}`));
    if (local) configuration.push({ path, file: local.file });
    else if (!optionalFiles.includes(path)) lacking.push(path);
  }
  return { configuration, lacking };
}

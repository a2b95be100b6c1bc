import { type ComponentId, KinoraError, type LocalFile } from '../contract';
import type { ModelInstallation } from '../pipeline/installation';
import type { ByteSource } from '../weights/formats/source';
import { openTensorFile } from '../weights/formats/tensor-file';
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
  return path.split('/').at(-1) ?? path;
}

const weightEnding = /\.(safetensors|gguf|sft)$/i;
/** Weights in a form that is not read: to be named, not passed over. */
const foreignEnding = /\.(ckpt|pth|pt|bin|msgpack|onnx)$/i;

/**
 * Matches local files to the parts of a model: weights by what they hold, whatever they are called, and
 * the configuration by its paths inside the picked folder. Other files are left alone.
 *
 * @throws KinoraError `MODEL_WRONG_KIND` naming each file that is no part of the model,
 * `MODEL_FILE_MISSING` when none is
 */
export async function matchFiles(
  files: readonly LocalFile[],
  installation: ModelInstallation,
): Promise<LocalFiles> {
  const matched = new Map<ComponentId, LocalFile[]>();
  const wrong: { readonly path: string; readonly what: string }[] = [];
  for (const local of files) {
    if (foreignEnding.test(local.path)) {
      wrong.push({ path: local.path, what: 'not safetensors or GGUF' });
    }
    if (!weightEnding.test(local.path)) continue;
    const header = await openTensorFile(localSource(local));
    const { name, component } = installation.recognise(header);
    if (component === null) wrong.push({ path: local.path, what: name || 'unknown weights' });
    else matched.set(component, [...(matched.get(component) ?? []), local]);
  }
  // In a picked folder there may be more than this model; what was picked by itself is meant.
  const named = matched.size === 0 ? wrong : wrong.filter(({ path }) => !path.includes('/'));
  if (named.length > 0) {
    const list = named.map(({ path, what }) => `${path} (${what})`).join(', ');
    const verb = named.length > 1 ? 'are' : 'is';
    throw new KinoraError('MODEL_WRONG_KIND', `${list} ${verb} no part of this model.`);
  }
  for (const all of matched.values()) all.sort((a, b) => (a.path < b.path ? -1 : 1));
  const configuration = configurationIn(files, installation);
  if (configuration) matched.set('configuration', configuration);
  if (matched.size === 0) {
    const sentence = 'None of these files is a part of the model.';
    throw new KinoraError('MODEL_FILE_MISSING', sentence);
  }
  return matched;
}

/** The configuration, when all that it needs is there, under the paths by which it is kept. */
function configurationIn(
  files: readonly LocalFile[],
  { configurationFiles, optionalFiles }: ModelInstallation,
): LocalFile[] | null {
  const matches = configurationFiles.map((path) => {
    // A picked folder's own name comes before the paths inside it.
    const local = files.find((file) => file.path === path || file.path.endsWith(`/${path}`));
    return local && { path, file: local.file };
  });
  const there = matches.filter((file) => file !== undefined);
  const paths = new Set(there.map(({ path }) => path));
  const needed = configurationFiles.filter((path) => !optionalFiles.includes(path));
  return needed.every((path) => paths.has(path)) ? there : null;
}

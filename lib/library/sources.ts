import {
  type AdapterChoices,
  type ComponentId,
  finisherParts,
  KinoraError,
  type Licence,
  type ModelComponent,
  type ModelManifest,
  type Precision,
  precisions,
  type SourceFile,
  sourcesFor,
} from '../contract';
import { isConverted } from '../pipeline/installation';
import {
  type ByteSource,
  folderFrom,
  type ModelFolder,
  parseModelJson,
} from '../weights/formats/source';
import { openTensorFile, type TensorFile } from '../weights/formats/tensor-file';
import { type HubClient, hubByteSource, type Listing, localByteSource } from '../weights/hub';
import { loraStrength } from '../weights/lora-metadata';
import {
  checkerWeights,
  finisherFile,
  keepStart,
  languageModelFile,
  modelFolderOf,
  readStoredComponent,
  type StoreFolder,
} from '../weights/store';
import { readManifest } from '../weights/store/manifest';
import type { LibraryEnvironment } from './environment';
import { type LocalFiles, localSource } from './local-files';
import type { ManagedModel } from './managed-model';

/** A file of a component, ready to be read. */
export interface OpenedFile {
  /** Path under which a file is kept that is stored as it is. */
  readonly path: string;
  readonly source: ByteSource;
}

/** Dependencies of the look-up of a model's files. */
export interface FilesContext {
  readonly model: ManagedModel;
  readonly precision: Precision;
  readonly local: LocalFiles;
  readonly client: HubClient;
  readonly environment: Pick<LibraryEnvironment, 'models'>;
}

/** The files of a component on the hub; none where the manifest has no source for it. */
export function filesOf(
  manifest: Parameters<typeof sourcesFor>[0],
  component: ComponentId,
  precision: Precision,
  adapters?: AdapterChoices,
): readonly SourceFile[] {
  return sourcesFor(manifest, precision, adapters)
    .filter((source) => source.component === component)
    .flatMap(({ files }) => files);
}

/**
 * Opens the files of a component, local ones where there are any, else the hub's. The headers that are read are kept
 * in the component's folder. Every read of them ends with the signal.
 *
 * @throws KinoraError `MODEL_FILE_MISSING` when there is neither, and what the hub answers
 */
export async function openFiles(
  { model, precision, local, client, environment }: FilesContext,
  component: ComponentId,
  signal: AbortSignal,
): Promise<readonly OpenedFile[]> {
  const picked = local.get(component);
  if (picked) {
    return picked.map((file) => ({
      path: keptPath(component, file.path),
      source: localSource(file),
    }));
  }
  const files = filesOf(model.manifest, component, precision, model.adapters);
  if (files.length === 0) {
    throw new KinoraError(
      'MODEL_FILE_MISSING',
      `${model.manifest.name} has no address for its ${component}: choose its file or folder.`,
    );
  }
  return Promise.all(
    files.map(async (file, i) => {
      const onBytes = (bytes: number) => model.received(component, bytes);
      const hubFile = await client.file(file, signal);
      const remote = hubByteSource(client, hubFile, { onBytes });
      const announced = file.sha256 !== undefined && remote.sha256 !== null;
      if (announced && file.sha256 !== remote.sha256) {
        const sentence = `${file.path} of ${file.repository} is not the file that is meant.`;
        throw new KinoraError('DOWNLOAD_CORRUPT', sentence);
      }
      const folder = model.folder.folder(component);
      // Without a hash from the hub, the bytes must have the manifest's hash.
      const sha256 = remote.sha256 ?? file.sha256 ?? null;
      const read = (start: number, end: number) => remote.read(start, end, signal);
      const known = { ...remote, sha256, read };
      const source = isConverted(component)
        ? await keepStart(folder, i, known)
        : await storedInstead(environment.models, component, known);
      return { path: keptPath(component, file.path), source };
    }),
  );
}

/** Whether the hub has none of what was asked for, or does not give it: only the part that needs it fails. */
export function isWithheld(thrown: unknown): boolean {
  const code = thrown instanceof KinoraError ? thrown.code : null;
  return code === 'HUB_NOT_FOUND' || code === 'HUB_DENIED';
}

/** The file that PEFT writes beside the weights of an adapter: it has their alpha, which they do not. */
export const adapterConfig = 'adapter_config.json';

/**
 * The headers of a component's weights. The values of {@link adapterConfig} are treated as if diffusers had written
 * them into the headers.
 *
 * @returns the files of weights among the sources, and their headers in the same order
 * @throws KinoraError as `openTensorFile`, and `MODEL_FILE_INVALID`, `MODEL_CONFIG_INVALID` for the file of PEFT
 */
export async function openHeaders(
  sources: readonly ByteSource[],
): Promise<{ readonly weights: readonly ByteSource[]; readonly headers: readonly TensorFile[] }> {
  const isConfig = ({ name }: ByteSource) =>
    name.split('/').at(-1)?.split('@')[0] === adapterConfig;
  const weights = sources.filter((source) => !isConfig(source));
  const headers = await Promise.all(weights.map((source) => openTensorFile(source)));
  const config = sources.find(isConfig);
  if (!config) return { weights, headers };
  const text = new TextDecoder().decode(await config.read(0, config.size));
  const written = ['lora_adapter_metadata', text] as const;
  parseModelJson(config.name, text);
  const [note] = loraStrength(new Map([written])).notes;
  if (note !== undefined) throw new KinoraError('MODEL_CONFIG_INVALID', `${config.name}: ${note}.`);
  return {
    weights,
    headers: headers.map((header) => ({
      ...header,
      metadata: new Map([written, ...header.metadata]),
    })),
  };
}

/**
 * Keeps each part of an added model with the listed model that has it of the same files: it is not fetched again.
 *
 * @param isOwn whether the added model keeps a part itself all the same
 */
export async function shareParts(
  manifest: ModelManifest,
  listed: readonly ModelManifest[],
  isOwn: (component: ModelComponent) => boolean | Promise<boolean>,
): Promise<ModelManifest> {
  const sharing = manifest.components.map(async (component) => {
    const { keptWith, ...own } = component;
    const made = makingOf(manifest, own.id);
    const homes = listed
      .filter((other) => made !== null && makingOf(other, own.id) === made)
      .map((other) => other.components.find(({ id }) => id === own.id)?.keptWith ?? other.id);
    const home = homes.find((id) => id === keptWith) ?? homes[0];
    return home === undefined || (await isOwn(component)) ? own : { ...own, keptWith: home };
  });
  return { ...manifest, components: await Promise.all(sharing) };
}

/** Sources and form of a part, for comparison; null where the manifest has no files of it. */
function makingOf(manifest: ModelManifest, component: ComponentId): string | null {
  const { family, components } = manifest;
  const files = precisions.map((precision) =>
    filesOf(manifest, component, precision).map(({ bytes: _, sha256: __, ...file }) => file),
  );
  const kept = components.find(({ id }) => id === component)?.precisions;
  return files.flat().length === 0 ? null : JSON.stringify([family, kept, files]);
}

/**
 * What an installed model keeps of a file of the hub as it came, in place of the hub's; the hub's file where none does.
 *
 * @param models the folder of all models
 * @param component in which it is looked for
 */
async function storedInstead(
  models: StoreFolder,
  component: string,
  remote: ByteSource,
): Promise<ByteSource> {
  if (remote.sha256 === null) return remote;
  for (const id of await models.folders()) {
    const folder = models.folder(id).folder(component);
    const manifest = await readManifest(folder);
    const sources = manifest?.stored.sources ?? [];
    const path = Object.keys(manifest?.files ?? {})[
      sources.findIndex(({ sha256 }) => sha256 === remote.sha256)
    ];
    const file = path && (await folder.file(path));
    if (!file) continue;
    const { read, stream } = localByteSource({ path, file });
    return { ...remote, read, stream };
  }
  return remote;
}

/** Path under which a file is stored that is not converted. */
function keptPath(component: ComponentId, path: string): string {
  if (component === 'language_model') return languageModelFile;
  if (finisherParts.some((part) => part === component)) return finisherFile;
  if (component !== 'safety_checker') return path;
  return path.endsWith('.safetensors') ? checkerWeights : (path.split('/').at(-1) ?? path);
}

/**
 * The configuration of a model, wherever it is: stored, beside its manifest, or on the hub, of which
 * only the few small files are read that are asked for.
 */
export async function configurationOf(
  model: ManagedModel,
  precision: Precision,
  client: HubClient,
): Promise<ModelFolder> {
  const folder = model.folder.folder('configuration');
  if (await readStoredComponent(folder)) return modelFolderOf(folder);
  return (
    model.listed.base ?? hubFolder(filesOf(model.manifest, 'configuration', precision), client)
  );
}

/** The licence of what comes without a statement of one. */
export const unknownLicence: Licence = { name: 'unknown' };

/** The licence of a repository by its own words, with its page. */
export function licenceOf({ licence, repository }: Listing, client: HubClient): Licence {
  return { name: licence ?? unknownLicence.name, url: client.page(repository) };
}

/** Files of the hub as a folder in which they lie under their own paths. */
export function hubFolder(files: readonly SourceFile[], client: HubClient): ModelFolder {
  return folderOfFiles(files, async (file) => hubByteSource(client, await client.file(file)));
}

/** Files, of the hub or picked, as a folder in which they lie under their own paths. */
export function folderOfFiles<F extends { readonly path: string }>(
  files: readonly F[],
  source: (file: F) => ByteSource | Promise<ByteSource>,
): ModelFolder {
  const find = (path: string) => files.find((file) => file.path === path);
  return folderFrom(
    async (path) => {
      const file = find(path);
      if (!file) throw new KinoraError('MODEL_FILE_MISSING', `${path} is missing.`);
      return source(file);
    },
    async (path) => find(path) !== undefined,
  );
}

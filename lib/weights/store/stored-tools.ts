import type { FinisherPart } from '../../contract';
import type { ModelFolder, WeightFile } from '../formats/source';
import { modelFolderOf, type StoreFolder } from './folder';
import { readManifest } from './manifest';
import { opfsFolder } from './opfs';
import { readStoredComponent } from './stored';

/** Name of the folder of all tools in the browser's private file system. */
export const toolFolder = 'tools';
/** Name under which the file of a language model is stored. */
export const languageModelFile = 'model.gguf';

/** A language model that is installed. */
export interface InstalledLanguageModel {
  readonly file: File;
  /** `owner/name/path`, or the name of a local file. */
  readonly name: string;
  /** SHA-256 of the file in hex. */
  readonly sha256: string;
}

/**
 * The language model for the prompt optimiser: of several, the one that was installed last; null without
 * one.
 *
 * @param tools the folder of all tools
 */
export async function findLanguageModel(
  tools: StoreFolder = opfsFolder(toolFolder),
): Promise<InstalledLanguageModel | null> {
  let last: InstalledLanguageModel | null = null;
  let lastAt = '';
  for (const id of await tools.folders()) {
    const folder = tools.folder(id).folder('language_model');
    const manifest = await readManifest(folder);
    const [source] = manifest?.stored.sources ?? [];
    const file = manifest && (await folder.file(languageModelFile));
    if (!manifest || !file || !source?.sha256 || file.size !== source.bytes) continue;
    if (manifest.stored.completedAt < lastAt) continue;
    lastAt = manifest.stored.completedAt;
    last = { file, name: source.name.replace(/@[^@/]*$/, ''), sha256: source.sha256 };
  }
  return last;
}

/** Names under which the two files of a safety checker are stored. */
export const checkerConfig = 'config.json';
export const checkerWeights = 'model.safetensors';

/** A safety checker that is installed. */
export interface InstalledChecker {
  /** Has {@link checkerConfig} and {@link checkerWeights}. */
  readonly folder: ModelFolder;
  /** Its repository, `owner/name`, or the name of a local file. */
  readonly model: string;
  /** SHA-256 of its weights in hex. */
  readonly sha256: string;
}

/**
 * The safety checker for a model: its own, or else that of any installed model; null without one.
 *
 * @param models the folder of all models
 */
export async function findSafetyChecker(
  models: StoreFolder,
  modelId: string,
): Promise<InstalledChecker | null> {
  for (const id of new Set([modelId, ...(await models.folders())])) {
    const folder = models.folder(id).folder('safety_checker');
    const manifest = await readManifest(folder);
    const paths = Object.keys(manifest?.files ?? {});
    const source = manifest?.stored.sources[paths.indexOf(checkerWeights)];
    if (!source?.sha256) continue;
    const model = source.name.split('/').slice(0, 2).join('/');
    return { folder: modelFolderOf(folder), model, sha256: source.sha256 };
  }
  return null;
}

/** Name under which the file of a network that finishes videos is stored. */
export const finisherFile = 'model.safetensors';

/**
 * The file of a network that finishes videos; null where none is installed.
 *
 * @param tools the folder of all tools
 */
export async function findFinisher(
  part: FinisherPart,
  tools: StoreFolder = opfsFolder(toolFolder),
): Promise<WeightFile | null> {
  for (const id of await tools.folders()) {
    const folder = tools.folder(id).folder(part);
    if (await readStoredComponent(folder)) return modelFolderOf(folder).open(finisherFile);
  }
  return null;
}

import type { ModelFolder } from '../formats/source';
import { modelFolderOf, type StoreFolder } from './folder';
import { readManifest } from './manifest';

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

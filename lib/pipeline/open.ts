import { hasSources, KinoraError, type ModelManifest, parseManifest } from '../contract';
import { httpFolder, type ModelFolder, parseModelJson } from '../weights';
import { type StoreFolder, storeOfModel } from '../weights/store';
import type { ModelFamilies, ModelFamily, VideoModel } from './model';

/** Places where models are looked for. */
export interface ModelSources {
  readonly families: ModelFamilies;
  /** Where `${id}.json` of the bundled and the listed models lies, with a trailing slash. */
  readonly manifests: URL;
  /** The folder of all installed models; nothing is installed where it is absent. */
  readonly store?: StoreFolder;
}

/**
 * Opens a model by its id: one that is bundled as files, or one that was installed. The manifest of an
 * added model lies in the store, as `model.json`.
 *
 * @throws KinoraError `MODEL_UNKNOWN`, `MODEL_MANIFEST_INVALID`, `MODEL_NOT_INSTALLED`, and as
 * {@link ModelFamily.open} and {@link ModelFamily.openInstalled}
 */
export async function openModel(id: string, sources: ModelSources): Promise<VideoModel> {
  const { families, manifests, store } = sources;
  if (!/^[a-z0-9][a-z0-9._-]*$/.test(id)) throw unknown(id);
  const added = await store?.folder(id).readText('model.json');
  if (store && added) {
    const manifest = parseManifest(parseModelJson('model.json', added));
    return familyOf(families, manifest).openInstalled(manifest, storeOfModel(store, manifest));
  }
  const { manifest, folder } = await fetchManifest(id, manifests);
  const family = familyOf(families, manifest);
  if (hasSources(manifest) || !folder) {
    if (store) return family.openInstalled(manifest, storeOfModel(store, manifest));
    const sentence = `The model "${manifest.name}" is not in this browser yet.`;
    throw new KinoraError('MODEL_NOT_INSTALLED', sentence);
  }
  return family.open(manifest, folder);
}

/**
 * The manifest of a bundled or listed model, and the folder of its files: all of a bundled one's, the
 * configuration of others; null where it has none.
 *
 * @throws KinoraError `MODEL_UNKNOWN`, `MODEL_MANIFEST_INVALID`
 */
export async function fetchManifest(
  id: string,
  manifests: URL,
): Promise<{ readonly manifest: ModelManifest; readonly folder: ModelFolder | null }> {
  const url = new URL(`${id}.json`, manifests);
  const response = await fetch(url);
  if (!response.ok) throw unknown(id);
  const manifest = parseManifest(await response.json());
  const { base, files } = manifest;
  if (base === undefined) return { manifest, folder: null };
  return { manifest, folder: httpFolder(new URL(base, url), { files }) };
}

function unknown(id: string): KinoraError {
  return new KinoraError('MODEL_UNKNOWN', `There is no model "${id}".`);
}

/**
 * The family that runs a model.
 *
 * @throws KinoraError `MODEL_MANIFEST_INVALID` where this version has none of that name
 */
export function familyOf<Family>(
  families: Readonly<Record<string, Family>>,
  manifest: Pick<ModelManifest, 'name' | 'family'>,
): Family {
  const { family: name } = manifest;
  const family = Object.hasOwn(families, name) ? families[name] : undefined;
  if (family) return family;
  throw new KinoraError(
    'MODEL_MANIFEST_INVALID',
    `The model "${manifest.name}" is of the family "${manifest.family}", which this version cannot run.`,
    { remedy: 'Use a newer version of Kinora, or another model.' },
  );
}

import { type ModelManifest, parseManifest } from '../contract';
import type { StoreFolder } from '../weights/store';

/** Manifest of an added model, in the model's own folder. */
const fileName = 'model.json';

/** The models that the user has added; what cannot be read is no model. */
export async function addedModels(models: StoreFolder): Promise<readonly ModelManifest[]> {
  const found: ModelManifest[] = [];
  for (const id of await models.folders()) {
    const text = await models.folder(id).readText(fileName);
    if (text === null) continue;
    try {
      const manifest = parseManifest(JSON.parse(text));
      if (manifest.id === id) found.push(manifest);
    } catch {
      // Written by another version of Kinora, perhaps: it can be added again.
    }
  }
  return found;
}

export async function writeAddedModel(folder: StoreFolder, manifest: ModelManifest): Promise<void> {
  await folder.writeText(fileName, JSON.stringify(manifest));
}

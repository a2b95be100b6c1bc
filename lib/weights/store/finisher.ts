import type { FinisherPart } from '../../contract';
import type { WeightFile } from '../formats/source';
import { modelFolderOf, type StoreFolder } from './folder';
import { toolFolder } from './language-model';
import { opfsFolder } from './opfs';
import { readStoredComponent } from './stored';

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

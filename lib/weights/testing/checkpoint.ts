import { type Checkpoint, checkpointOf, openTensorFiles } from '../formats/checkpoint';
import { locateTensors } from '../formats/located';
import type { ModelFolder } from '../formats/source';

/** Opens the weights of a component by their own names, as {@link openTensorFiles} finds them. */
export async function openCheckpoint(
  folder: ModelFolder,
  dir: string,
  baseName?: string,
): Promise<Checkpoint> {
  return checkpointOf(dir, locateTensors(await openTensorFiles(folder, dir, baseName)));
}

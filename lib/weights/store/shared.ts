import type { ModelManifest } from '../../contract';
import type { StoreFolder } from './folder';

/**
 * The folder of a model. A component that its manifest keeps with another model lies in that model's folder: both
 * read the same files.
 *
 * @param models the folder of all models
 */
export function storeOfModel(
  models: StoreFolder,
  { id, components }: Pick<ModelManifest, 'id' | 'components'>,
): StoreFolder {
  const own = models.folder(id);
  const places = new Map(components.map((component) => [component.id, component.keptWith]));
  const folder = (path: string) => {
    const other = places.get(path);
    return other === undefined ? own.folder(path) : models.folder(other).folder(path);
  };
  return { ...own, folder };
}

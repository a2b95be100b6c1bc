import { cp, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fixtureManifest, modelFolder } from './fixtures';

/** The golden model with a manifest of its own, which says at what size it runs. */
export async function goldenFolder(folder: string): Promise<string> {
  await cp(modelFolder, folder, { recursive: true });
  const { base: _, ...rest } = fixtureManifest();
  const own = { ...rest, id: 'golden', name: 'Golden', precision: 'int8' };
  await writeFile(path.join(folder, 'kinora.json'), JSON.stringify(own));
  return folder;
}

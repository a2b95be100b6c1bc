import { cp, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { root } from '../../lib/cli/paths';
import { modelFolder } from './fixtures';

/** The golden model with a manifest of its own, which says at what size it runs. */
export async function goldenFolder(folder: string): Promise<string> {
  await cp(modelFolder, folder, { recursive: true });
  const manifest = await readFile(path.join(root, 'public', 'models', 'tiny.json'), 'utf8');
  const { base: _, ...rest } = JSON.parse(manifest);
  const own = { ...rest, id: 'golden', name: 'Golden', precision: 'int8' };
  await writeFile(path.join(folder, 'kinora.json'), JSON.stringify(own));
  return folder;
}

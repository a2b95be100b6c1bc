import { mkdir } from 'node:fs/promises';
import type { Config } from './config';

/**
 * Makes the folder of everything that is kept on this machine.
 *
 * @throws Error with one sentence that names the setting
 */
export async function makeDataFolder({ KINORA_DATA: folder }: Pick<Config, 'KINORA_DATA'>) {
  try {
    await mkdir(folder, { recursive: true });
  } catch (thrown) {
    const code = thrown instanceof Error && 'code' in thrown ? thrown.code : '';
    if (code === 'EEXIST' || code === 'ENOTDIR') {
      throw new Error(`KINORA_DATA must be a folder, and ${folder} is none. Name another one.`);
    }
    throw new Error(`KINORA_DATA cannot be used: the folder ${folder} cannot be made (${code}).`);
  }
}

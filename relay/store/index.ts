import { mkdir } from 'node:fs/promises';
import type { Logger } from 'pino';
import { ApiError } from '../../lib/contract/v3';
import type { Config } from '../config';
import type { Store } from './store';

export { storageDown, storageErrors, withoutValues, withStorageErrors } from './errors';
export * from './store';

/**
 * Opens the database and brings its schema up to date. Only the server process calls it: nothing
 * opens a database when a module is loaded (README.md).
 *
 * @throws Error with one sentence when another process has the embedded database
 * @throws ApiError `STORAGE_DOWN` when PostgreSQL cannot be reached
 */
export async function openStore(
  config: { readonly KINORA_DATA: string; readonly DATABASE_URL?: string | undefined },
  log?: Logger,
): Promise<Store> {
  // Only the engine that is used is loaded: both together take 0.4 s.
  if (config.DATABASE_URL) {
    const { openPostgres } = await import('./postgres');
    return await openPostgres(config.DATABASE_URL, log);
  }
  const { openPglite } = await import('./pglite');
  return await openPglite(config.KINORA_DATA, log);
}

/**
 * Makes the data folder.
 *
 * @throws Error with one sentence that names the setting
 */
async function makeDataFolder({ KINORA_DATA: folder }: Pick<Config, 'KINORA_DATA'>) {
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

/**
 * {@link openStore} for a process that is being started, in the data folder, which it makes.
 *
 * @throws Error with sentences for the operator, which name the setting, and never an address or a password
 */
export async function openDatabase(
  config: Pick<Config, 'KINORA_DATA' | 'DATABASE_URL'>,
  log?: Logger,
): Promise<Store> {
  await makeDataFolder(config);
  if (config.DATABASE_URL === undefined) return await openStore(config, log);
  try {
    return await openStore(config, log);
  } catch (thrown) {
    throw new Error(`${describeFailure(thrown)} Start it, or correct DATABASE_URL.`);
  }
}

function describeFailure(thrown: unknown): string {
  const cause = thrown instanceof ApiError ? thrown.cause : thrown;
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  const why = typeof code === 'string' ? ` (${code})` : '';
  return `The PostgreSQL that DATABASE_URL names cannot be used${why}.`;
}

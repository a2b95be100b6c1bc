import type { Logger } from 'pino';
import { openPglite } from './pglite';
import { openPostgres } from './postgres';
import type { Store } from './store';

export { inBatches } from './batches';
export { storageDown, storageErrors, withoutValues } from './errors';
export * from './store';

/**
 * Opens the database and brings its schema up to date. Only the server process calls it: nothing
 * opens a database when a module is loaded (README.md).
 *
 * @throws Error with one sentence when another process has the embedded database
 * @throws ApiError `STORAGE_DOWN` when PostgreSQL cannot be reached
 */
export function openStore(
  config: { readonly KINORA_DATA: string; readonly DATABASE_URL?: string | undefined },
  log?: Logger,
): Promise<Store> {
  return config.DATABASE_URL
    ? openPostgres(config.DATABASE_URL, log)
    : openPglite(config.KINORA_DATA, log);
}

import type { Logger } from 'pino';
import type { Store } from './store';

export { storageDown, storageErrors, withoutValues } from './errors';
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
  // Only the engine that is used is loaded: together they cost a start 0.4 s.
  if (config.DATABASE_URL) {
    const { openPostgres } = await import('./postgres');
    return await openPostgres(config.DATABASE_URL, log);
  }
  const { openPglite } = await import('./pglite');
  return await openPglite(config.KINORA_DATA, log);
}

import type { Logger } from 'pino';
import { ApiError } from '../lib/contract/v3';
import type { Config } from './config';
import { makeDataFolder } from './data-folder';
import { openStore, type Store } from './store';

/**
 * Opens the database that the settings name, for a process that is being started: what keeps it from
 * opening is told in sentences for whoever set it up.
 *
 * @throws Error which names the setting, and never an address or a password
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
    throw new Error(`${sentenceOf(thrown)} Start it, or correct DATABASE_URL.`);
  }
}

function sentenceOf(thrown: unknown): string {
  const cause = thrown instanceof ApiError ? thrown.cause : thrown;
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  const why = typeof code === 'string' ? ` (${code})` : '';
  return `The PostgreSQL that DATABASE_URL names cannot be used${why}.`;
}

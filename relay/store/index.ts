import { randomBytes } from 'node:crypto';
import { constants, existsSync } from 'node:fs';
import { access, mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { eq } from 'drizzle-orm';
import type { Logger } from 'pino';
import { ApiError } from '../../lib/contract/v3';
import type { Config } from '../config';
import { settings } from './schema';
import type { Database, Store } from './store';

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
 * Makes the data folder, and checks by writing that this user may write in it and in the database that is there:
 * PGlite's own error names neither.
 *
 * @throws Error with sentences that name the setting
 */
async function makeDataFolder({ KINORA_DATA: folder }: Pick<Config, 'KINORA_DATA'>) {
  const database = path.join(folder, 'db');
  const probe = path.join(folder, `.probe-${process.pid}`);
  try {
    await mkdir(folder, { recursive: true });
    await writeFile(probe, '');
    await rm(probe, { force: true });
    if (existsSync(database)) await access(database, constants.W_OK);
  } catch (thrown) {
    const code = thrown instanceof Error && 'code' in thrown ? thrown.code : '';
    if (code === 'EEXIST' || code === 'ENOTDIR') {
      throw new Error(`KINORA_DATA must be a folder, and ${folder} is none. Name another one.`);
    }
    const remedy = 'Give it to the user of the server, or set KINORA_DATA to another folder.';
    throw new Error(`The data folder ${folder} cannot be written (${code}). ${remedy}`);
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
  return await openStore(config, log).catch((thrown: unknown) => {
    if (config.DATABASE_URL === undefined) throw thrown;
    const cause = thrown instanceof ApiError ? thrown.cause : thrown;
    const code = cause instanceof Error && 'code' in cause ? ` (${cause.code})` : '';
    const sentence = `The PostgreSQL that DATABASE_URL names cannot be used${code}.`;
    throw new Error(`${sentence} Start it, or correct DATABASE_URL.`);
  });
}

/**
 * A secret of the installation: made by the first node, read by all.
 *
 * @returns 32 random bytes, base64url
 */
export async function installationSecret(
  db: Database,
  name: 'link_secret' | 'signing_secret',
): Promise<string> {
  const value = randomBytes(32).toString('base64url');
  await db.insert(settings).values({ name, value }).onConflictDoNothing();
  const [row] = await db.select().from(settings).where(eq(settings.name, name));
  if (!row) throw new Error('A secret was deleted while it was being read.');
  return row.value;
}

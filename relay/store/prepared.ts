import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { chmod, cp, readdir, rename, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { migrationsFolder, serverBuild } from './folders';

/**
 * Name of an empty embedded database: a hash over the engine's version and the migrations, so that one of
 * other sources is never taken.
 */
export function databaseName(): string {
  const engine = createRequire(import.meta.url).resolve('@electric-sql/pglite');
  const hash = createHash('sha256');
  hash.update(readFileSync(path.join(path.dirname(engine), '..', 'package.json')));
  for (const file of readdirSync(migrationsFolder).sort()) {
    if (file.endsWith('.sql')) hash.update(readFileSync(path.join(migrationsFolder, file)));
  }
  return `db-${hash.digest('hex').slice(0, 16)}`;
}

/** Where `npm run build` puts the empty database of these sources. */
export const preparedDatabase = (): string => path.join(serverBuild, databaseName());

/**
 * Copies the prepared database to where there is none yet, whole or not at all. Without a prepared one PGlite makes it.
 *
 * @param folder of the database; its process has the lock
 */
export async function copyPrepared(folder: string, prepared = preparedDatabase()): Promise<void> {
  if (existsSync(folder) || !existsSync(prepared)) return;
  const draft = `${folder}.part`;
  await rm(draft, { recursive: true, force: true });
  await cp(prepared, draft, { recursive: true });
  // PostgreSQL refuses a folder that others can read, and must write what a read-only build folder has.
  await chmodAll(draft, 0o700);
  await rename(draft, folder);
}

export async function chmodAll(folder: string, mode: number): Promise<void> {
  const names = await readdir(folder, { recursive: true });
  await Promise.all(['', ...names].map((name) => chmod(path.join(folder, name), mode)));
}

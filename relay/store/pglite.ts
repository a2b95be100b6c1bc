import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { chmod, cp, mkdir, readdir, rename, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/pglite';
import { migrate } from 'drizzle-orm/pglite/migrator';
import type { Logger } from 'pino';
import { once } from '../loop';
import { migrationsFolder, serverBuild } from './folders';
import { takeLock } from './lock';
import * as schema from './schema';
import { createBatcher, createListeners, type Database, type Store, withinASecond } from './store';

/** PostgreSQL's cache of pages: 16 MB and not 128, as the system caches the files as well (README.md). */
const startParams = [...PGlite.defaultStartParams, '-c', 'shared_buffers=16MB'];

export const maintenanceSeconds = 60;

/**
 * PostgreSQL's autovacuum at its defaults (autovacuum_vacuum_threshold and _scale_factor), which PGlite does not have:
 * every heartbeat leaves a dead row. Vacuuming blocks the database, so it is done often.
 *
 * @returns the tables that were cleared
 */
export async function clearDead(db: Database): Promise<readonly string[]> {
  const tables = await db
    .select({ name: sql<string>`s.relname` })
    .from(sql`pg_stat_user_tables as s join pg_class as c on c.oid = s.relid`)
    .where(sql`s.n_dead_tup > 50 + 0.2 * greatest(c.reltuples, 0)`);
  for (const { name } of tables) await db.execute(sql`vacuum ${sql.identifier(name)}`);
  return tables.map(({ name }) => name);
}

/**
 * The embedded database, in one folder, for one process (README.md).
 *
 * @param folder `{folder}/db` holds the database, `{folder}/db.lock` names its process
 * @throws Error with one sentence when another process has the folder
 */
export async function openPglite(folder: string, log?: Logger): Promise<Store> {
  await mkdir(folder, { recursive: true });
  const data = path.join(folder, 'db');
  const unlock = await takeLock(`${data}.lock`, `The database in ${data}`, {
    onLost: (sentence) => endProcess(sentence, log),
    onWait: say,
  });
  await copyPrepared(data);
  const client = new PGlite(data, { startParams });
  const db = drizzle(client, { schema });
  try {
    await client.waitReady;
    await migrate(db, { migrationsFolder });
  } catch (error) {
    await client.close().catch(() => undefined);
    await unlock();
    throw error;
  }

  const logged = (sentence: string) => (err: unknown) => log?.error({ err }, sentence);
  const onError = logged('a listener of the store failed');
  const listeners = createListeners(onError);
  // The lock makes this process the only one, so messages stay in it; a real NOTIFY would cost a
  // statement of the one connection.
  const batcher = createBatcher(async (messages) => {
    for (const { channel, payload } of messages) listeners.emit(channel, payload);
  }, onError);

  let clearing: Promise<unknown> = Promise.resolve();
  const maintenance = setInterval(() => {
    clearing = clearDead(db).catch(logged('the database could not be vacuumed'));
  }, maintenanceSeconds * 1000).unref();

  return {
    db,
    notify: batcher.add,
    listen: listeners.listen,
    ping: () => withinASecond(db.execute(sql`select 1`)),
    close: once(async () => {
      clearInterval(maintenance);
      await clearing;
      await batcher.flushed();
      listeners.clear();
      await client.close();
      await unlock();
    }),
  };
}

/**
 * Ends this process as another one has the folder: each further write would destroy the database, and
 * closing it writes too.
 */
function endProcess(sentence: string, log?: Logger): never {
  log?.fatal(sentence);
  say(`Kinora ends: ${sentence}`);
  process.exit(1);
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

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

/** Folder of the empty database of these sources, which `npm run build` makes. */
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

import { createHash, randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { cp, mkdtemp, rename, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe } from 'vitest';
import { openStore, type Store } from '../store';
import { migrationsFolder } from '../store/migrations';
import { startPostgres, type TestPostgres } from './postgres';

/** Both engines: whatever touches the store is tested on each. */
export const engines = ['pglite', 'postgres'] as const;
export type Engine = (typeof engines)[number];

/** A busy machine may take this long to start a database. */
const hookMs = 120_000;

/** A store with an empty database of its own. */
export interface TestStore {
  readonly store: Store;
  /** What opens the same database once more: a second node, on PostgreSQL only. */
  readonly settings: { readonly KINORA_DATA: string; readonly DATABASE_URL?: string };
  /** Closes it and removes its files. */
  close(): Promise<void>;
}

/**
 * Tests in a `describe` named after the engine, which share one fresh store.
 *
 * @param tests gets a function that returns the store, to be called inside tests and hooks
 */
export function withStore(engine: Engine, tests: (fixture: () => TestStore) => void): void {
  describe(engine, () => {
    let opened: TestStore | undefined;
    beforeAll(async () => {
      opened = await openTestStore(engine);
    }, hookMs);
    afterAll(async () => {
      await opened?.close();
    }, hookMs);
    tests(() => {
      if (!opened) throw new Error('The store is opened before the first test.');
      return opened;
    });
  });
}

/** A fresh store on either engine, closed by the caller. */
export async function openTestStore(engine: Engine): Promise<TestStore> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'kinora-store-'));
  try {
    if (engine === 'pglite') {
      await cp(await pgliteTemplate(), folder, { recursive: true });
      return await opened({ KINORA_DATA: folder }, folder);
    }
    const server = await sharedPostgres();
    const url = await server.database(`kinora_${randomBytes(6).toString('hex')}`);
    const test = await opened({ KINORA_DATA: folder, DATABASE_URL: url }, folder);
    users += 1;
    return {
      ...test,
      async close() {
        await test.close();
        users -= 1;
        if (users > 0) return;
        shared = null;
        await server.stop();
      },
    };
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

async function opened(settings: TestStore['settings'], folder: string): Promise<TestStore> {
  const store = await openStore(settings);
  return {
    store,
    settings,
    async close() {
      await store.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Empties the tables of jobs, for a test that counts. */
export async function clearJobs(store: Store): Promise<void> {
  // Quicker than TRUNCATE, which makes every index anew.
  await store.db.execute(sql`delete from deliveries`);
  await store.db.execute(sql`delete from jobs`);
}

let shared: Promise<TestPostgres> | null = null;
let users = 0;

/** One server for a test file; each store is a database in it. */
function sharedPostgres(): Promise<TestPostgres> {
  shared ??= startPostgres();
  return shared;
}

/**
 * A folder with an embedded database that is up to date, made once per version of the engine and of the
 * migrations: making one takes seconds, copying it a moment.
 */
export async function pgliteTemplate(): Promise<string> {
  const engine = createRequire(import.meta.url).resolve('@electric-sql/pglite');
  const hash = createHash('sha256').update(engine);
  hash.update(readFileSync(path.join(path.dirname(engine), '..', 'package.json')));
  for (const file of readdirSync(migrationsFolder).sort()) {
    if (file.endsWith('.sql')) hash.update(readFileSync(path.join(migrationsFolder, file)));
  }
  const user = process.getuid?.() ?? 'user';
  const name = `kinora-pglite-${user}-${hash.digest('hex').slice(0, 16)}`;
  const template = path.join(os.tmpdir(), name);
  if (existsSync(template)) return template;
  const draft = await mkdtemp(`${template}-`);
  const store = await openStore({ KINORA_DATA: draft });
  await store.close();
  try {
    await rename(draft, template);
  } catch {
    // Another test file was first.
    await rm(draft, { recursive: true, force: true });
  }
  return template;
}

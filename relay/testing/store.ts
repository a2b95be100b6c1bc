import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe } from 'vitest';
import { openStore, type Store } from '../store';
import { pgliteFolder } from './pglite';
import { startPostgres, type TestPostgres } from './postgres';

/** Both engines: code that uses the store is tested on each. */
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
  // `npm test` runs on PGlite alone; `npm run test:all` on PostgreSQL as well.
  const tags = engine === 'postgres' ? ['full'] : [];
  describe(engine, { tags }, () => {
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
  const isPglite = engine === 'pglite';
  const folder = await (isPglite
    ? pgliteFolder()
    : mkdtemp(path.join(os.tmpdir(), 'kinora-store-')));
  try {
    return await (isPglite ? opened({ KINORA_DATA: folder }, folder) : openedOnShared(folder));
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

async function openedOnShared(folder: string): Promise<TestStore> {
  // Counted before the start, so that another store which closes meanwhile does not stop the server.
  users += 1;
  const release = async () => {
    users -= 1;
    if (users > 0) return;
    const server = shared;
    shared = null;
    await (await server?.catch(() => undefined))?.stop();
  };
  try {
    const server = await sharedPostgres();
    const url = await server.database(`kinora_${randomBytes(6).toString('hex')}`);
    const test = await opened({ KINORA_DATA: folder, DATABASE_URL: url }, folder);
    return {
      ...test,
      async close() {
        try {
          await test.close();
        } finally {
          await release();
        }
      },
    };
  } catch (error) {
    await release();
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
  shared ??= startPostgres().catch((error: unknown) => {
    // The next file of this process tries again.
    shared = null;
    throw error;
  });
  return shared;
}

import { setTimeout as delay } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres';
import { migrate } from 'drizzle-orm/node-postgres/migrator';
import pg from 'pg';
import type { Logger } from 'pino';
import { Signal } from '../../lib/contract';
import { once } from '../loop';
import { migrationsFolder } from './folders';
import * as schema from './schema';
import {
  type Channel,
  channels,
  createBatcher,
  createListeners,
  type Database,
  type Store,
  storageDown,
  withinASecond,
} from './store';

/** Times in milliseconds after which the database counts as down. */
const connectMs = 3_000;
const statementMs = 15_000;
/** Connections of one node. PostgreSQL's default for all nodes is 100. */
const poolSize = 16;
/** "kinora" as a number: the advisory lock under which one node at a time migrates. */
const migrationLock = 0x6b696e6f;

/**
 * A PostgreSQL database, for any number of nodes.
 *
 * @param url as libpq reads it
 * @throws ApiError `STORAGE_DOWN` when it cannot be reached
 */
export async function openPostgres(url: string, log?: Logger): Promise<Store> {
  const connection: pg.ClientConfig = {
    connectionString: url,
    connectionTimeoutMillis: connectMs,
    keepAlive: true,
    application_name: 'kinora',
  };
  await migrateOnce(connection).catch((error: unknown) => {
    throw storageDown(error) ?? error;
  });

  const pool = new pg.Pool({
    ...connection,
    max: poolSize,
    statement_timeout: statementMs,
    // The server's own limit comes first; this one is for a server that does not answer at all.
    query_timeout: statementMs + 3_000,
    idle_in_transaction_session_timeout: 2 * statementMs,
  });
  // Without a listener an idle connection that breaks would end the process.
  pool.on('error', (error) => log?.warn({ err: error }, 'a connection to the database broke'));
  // So would a connection in a transaction, whose errors the pool does not handle. The transaction's next
  // statement fails.
  pool.on('connect', (client) => client.on('error', () => undefined));
  const db = databaseOf(pool);

  const listener = await startListener(connection, log);
  const batcher = createBatcher(
    async (messages) => {
      // One statement of its own: NOTIFY makes commits queue behind one lock, so it is never part
      // of a job's transaction.
      await pool.query({
        name: 'kinora_notify',
        text: 'select pg_notify(c, p) from unnest($1::text[], $2::text[]) as m(c, p)',
        values: [messages.map((m) => channels[m.channel]), messages.map((m) => m.payload)],
      });
    },
    (error) => log?.warn({ err: error }, 'the other nodes could not be notified'),
  );

  return {
    db,
    notify: batcher.add,
    listen: listener.listen,
    ping: () => withinASecond(db.execute(sql`select 1`)),
    close: once(async () => {
      await batcher.flushed();
      await listener.close();
      await pool.end();
    }),
  };
}

/**
 * Drizzle's database, with transactions that never leak a connection. Drizzle's own transaction does not
 * release a connection whose `begin` fails, and releases a broken one to the pool.
 */
function databaseOf(pool: pg.Pool): Database {
  const db = drizzle(pool, { schema });
  // Kept, as reading the schema for each would cost a transaction 0.2 ms.
  const single = new WeakMap<pg.PoolClient, NodePgDatabase<typeof schema>>();
  db.transaction = async (work, config) => {
    const client = await pool.connect();
    let broken = false;
    try {
      const one = single.get(client) ?? drizzle(client, { schema });
      single.set(client, one);
      return await one.transaction(work, config);
    } catch (error) {
      broken = storageDown(error) !== null;
      throw error;
    } finally {
      // A broken connection is closed and not reused.
      client.release(broken);
    }
  };
  return db;
}

/** Two nodes that start together migrate one after the other; the second finds nothing to do. */
async function migrateOnce(connection: pg.ClientConfig): Promise<void> {
  const client = new pg.Client(connection);
  client.on('error', () => undefined);
  await client.connect();
  try {
    await client.query('select pg_advisory_lock($1)', [migrationLock]);
    await migrate(drizzle(client, { schema }), { migrationsFolder });
  } finally {
    // The lock ends with the connection.
    await client.end();
  }
}

const firstRetryMs = 200;
const longestRetryMs = 10_000;
/** Interval at which a connection is checked, in milliseconds: a lost one may report no error. */
const checkMs = 20_000;
const names = Object.keys(channels) as Channel[];

/**
 * One connection that listens to every channel and reconnects when it breaks. Messages meanwhile are lost;
 * receivers also look at intervals.
 *
 * @returns once it listens, or a first try has failed
 */
async function startListener(connection: pg.ClientConfig, log?: Logger) {
  const listeners = createListeners((err) => log?.error({ err }, 'a listener of the store failed'));
  const stop = new AbortController();

  /** @returns false when the listener is being closed; only its signal rejects a pause */
  const pause = (ms: number): Promise<boolean> =>
    delay(ms, true, { signal: stop.signal, ref: false }).catch(() => false);

  /** Listens until the connection has ended or no longer answers. */
  async function listenOnce(started: () => void): Promise<void> {
    const client = new pg.Client({ ...connection, query_timeout: 5_000 });
    const ended = new Promise<boolean>((resolve) => {
      for (const event of ['error', 'end'] as const) client.on(event, () => resolve(false));
    });
    client.on('notification', ({ channel, payload }) => {
      const known = names.find((name) => channels[name] === channel);
      if (known) listeners.emit(known, payload ?? '');
    });
    try {
      await client.connect();
      await client.query(names.map((name) => `listen ${channels[name]}`).join(';'));
      started();
      while (await Promise.race([ended, pause(checkMs)])) await client.query('select 1');
    } finally {
      // It may be broken, or never have been open.
      await client.end().catch(() => undefined);
    }
  }

  const tried = new Signal();
  async function run(): Promise<void> {
    let retryMs = firstRetryMs;
    do {
      await listenOnce(() => {
        retryMs = firstRetryMs;
        tried.raise();
      }).catch((err: unknown) => log?.warn({ err }, 'the listener has no connection'));
      tried.raise();
      retryMs = Math.min(2 * retryMs, longestRetryMs);
    } while (await pause(retryMs / 2));
  }
  const loop = run();
  await tried.wait(Number.POSITIVE_INFINITY);
  return {
    listen: listeners.listen,
    async close(): Promise<void> {
      stop.abort();
      listeners.clear();
      await loop;
    },
  };
}

import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { pipeline } from 'node:stream';
import { getTableColumns, sql } from 'drizzle-orm';
import { getTableConfig, PgTable } from 'drizzle-orm/pg-core';
import { describe, expect, it, vi } from 'vitest';
import { engines, withStore } from '../testing/store';
import { openStore } from '.';
import * as schema from './schema';
import { storageDown } from './store';

/** For what comes at once on a machine that does nothing else; in milliseconds. */
const timeout = 30_000;
const tables = Object.values(schema).filter((value) => value instanceof PgTable);

/** What a caller of the API is told of a statement that fails. */
const refusalOf = (work: PromiseLike<unknown>) =>
  Promise.resolve(work).then(() => null, storageDown);

describe.each(engines)('the store', (engine) => {
  withStore(engine, (fixture) => {
    it('has the tables, columns and indexes of the schema', async () => {
      const { db } = fixture().store;
      const columns = await db
        .select({
          name: sql`table_name || '.' || column_name || ' ' || is_nullable`.mapWith(String),
        })
        .from(sql`information_schema.columns`)
        .where(sql`table_schema = 'public'`);
      const indexes = await db
        .select({ name: sql`indexname`.mapWith(String) })
        .from(sql`pg_indexes`)
        .where(sql`schemaname = 'public' and indexname not like '%_pk%'`);
      const wanted = tables.flatMap((table) => {
        const { name } = getTableConfig(table);
        return Object.values(getTableColumns(table)).map(
          (column) => `${name}.${column.name} ${column.notNull ? 'NO' : 'YES'}`,
        );
      });
      expect(columns.map(({ name }) => name).sort()).toEqual(wanted.sort());
      expect(indexes.map(({ name }) => name).sort()).toEqual(
        tables
          .flatMap((table) => getTableConfig(table).indexes.map(({ config }) => config.name ?? ''))
          .sort(),
      );
    });

    it('sends messages to its listeners, equal ones of the same moment once', async () => {
      const { store } = fixture();
      const heard: string[] = [];
      const stop = store.listen('jobChanged', (payload) => heard.push(payload));
      const deaf = store.listen('jobChanged', () => heard.push('never'));
      deaf();
      for (const payload of ['a', 'b', 'a']) store.notify('jobChanged', payload);
      store.notify('intakeDue', 'c');
      await expect.poll(() => heard, { timeout }).toContain('b');
      // What would have come twice has come when this has.
      store.notify('jobChanged', 'last');
      await expect.poll(() => heard, { timeout }).toContain('last');
      expect(heard).toEqual(['a', 'b', 'last']);
      stop();
    });

    it('answers a ping, and is not down for an error of the code', async () => {
      const { store } = fixture();
      // It takes a second at most, which a machine that stands still for a moment may pass.
      await vi.waitFor(() => store.ping(), { timeout });
      const secret = 'a prompt that no log may hold';
      const wrong = store.db.execute(sql`select ${secret}::int`);
      const error = await wrong.then(
        () => null,
        (thrown: unknown) => thrown,
      );
      expect(storageDown(error)).toBeNull();
      expect(error).toMatchObject({ cause: { code: '22P02' } });
    });

    it.runIf(engine === 'postgres')('is migrated once by nodes that start together', async () => {
      const { store, settings } = fixture();
      await store.db.execute(sql`drop schema public cascade`);
      await store.db.execute(sql`drop schema drizzle cascade`);
      await store.db.execute(sql`create schema public`);
      const nodes = await Promise.all([1, 2, 3].map(() => openStore(settings)));
      for (const node of nodes) expect(await node.db.select().from(schema.jobs)).toEqual([]);
      await Promise.all(nodes.map((node) => node.close()));
    });

    it.runIf(engine === 'postgres')(
      'hears other nodes, also after its connection broke',
      async () => {
        const { store: other, settings } = fixture();
        // By a name of its own: what a connection asked last changes with time.
        const DATABASE_URL = `${settings.DATABASE_URL}?application_name=hearing`;
        const store = await openStore({ ...settings, DATABASE_URL });
        const heard: string[] = [];
        const stop = store.listen('jobAvailable', (payload) => heard.push(payload));
        other.notify('jobAvailable', 'ada');
        await expect.poll(() => heard, { timeout }).toEqual(['ada']);
        const broken = await other.db
          .select({ pid: sql`pg_terminate_backend(pid)` })
          .from(sql`pg_stat_activity`)
          .where(sql`application_name = 'hearing'`);
        expect(broken).not.toEqual([]);
        const again = () => {
          other.notify('jobAvailable', 'bob');
          return heard.at(-1);
        };
        await expect.poll(again, { timeout }).toBe('bob');
        stop();
        await store.close();
      },
    );

    it.runIf(engine === 'postgres')(
      'outlives a connection that breaks inside a transaction',
      async () => {
        const { store } = fixture();
        const broken = store.db.transaction(async (tx) => {
          const [own] = await tx.select({ pid: sql`pg_backend_pid()` }).from(sql`(select 1) one`);
          await store.db.execute(sql`select pg_terminate_backend(${own?.pid})`);
          for (;;) await tx.execute(sql`select 1`);
        });
        expect(await refusalOf(broken)).toMatchObject({ code: 'STORAGE_DOWN' });
        const refused = store.db.transaction(() => Promise.reject(new Error('no')));
        await expect(refused).rejects.toThrow('no');
        await store.db.transaction((tx) => tx.execute(sql`select 1`));
      },
    );

    it.runIf(engine === 'postgres')(
      'has all of its connections again when the way to it was cut',
      async () => {
        const way = await cuttableWay(fixture().settings.DATABASE_URL);
        const store = await openStore({ KINORA_DATA: '', DATABASE_URL: way.url });
        const all = (work: () => Promise<unknown>) =>
          Promise.allSettled(Array.from({ length: 16 }, work));
        await all(() => store.db.execute(sql`select pg_sleep(0.1)`));
        way.cut(true);
        const begun = await all(() => refusalOf(store.db.transaction(() => Promise.resolve())));
        for (const one of begun) expect(one).toMatchObject({ value: { code: 'STORAGE_DOWN' } });
        way.cut(false);
        await store.db.execute(sql`select 1`);
        await store.close();
        way.close();
      },
    );

    it('is down when it is closed, and keeps its rows', async () => {
      const { store, settings } = fixture();
      if (engine === 'pglite') {
        await expect(openStore(settings)).rejects.toThrow(
          new RegExp(`in use by process ${process.pid}\\. Stop it`),
        );
      }
      await store.db.insert(schema.settings).values({ name: 'a', value: 'b' });
      await store.close();
      const refused = await refusalOf(store.db.execute(sql`select 1`));
      expect(refused).toMatchObject({ code: 'STORAGE_DOWN', status: 503 });
      const again = await openStore(settings);
      expect(await again.db.select().from(schema.settings)).toEqual([{ name: 'a', value: 'b' }]);
      await again.close();
    });
  });
});

it('is down when no PostgreSQL answers there', async () => {
  const opening = openStore({ KINORA_DATA: '', DATABASE_URL: 'postgresql://127.0.0.1:9/none' });
  await expect(opening).rejects.toMatchObject({ code: 'STORAGE_DOWN' });
});

/** Another way to a PostgreSQL, which can be cut: whatever is sent then breaks its connection. */
async function cuttableWay(to = '') {
  const url = new URL(to);
  const target = { host: url.hostname, port: Number(url.port) };
  let isCut = false;
  const server = createServer((near) => {
    const far = connect(target);
    near.on('data', () => isCut && near.destroy());
    // The end of either is the end of both.
    pipeline(near, far, near, () => undefined);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  url.host = `127.0.0.1:${typeof address === 'object' && address?.port}`;
  return {
    url: url.href,
    cut(now: boolean) {
      isCut = now;
    },
    close: () => server.close(),
  };
}

import { getTableColumns, sql } from 'drizzle-orm';
import { getTableConfig, PgTable } from 'drizzle-orm/pg-core';
import { describe, expect, it } from 'vitest';
import { engines, withStore } from '../testing/store';
import { openStore } from '.';
import { storageDown, storageErrors } from './errors';
import * as schema from './schema';

const tables = Object.values(schema).filter((value) => value instanceof PgTable);

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

    it('tells its listeners, and equal messages of a moment once', async () => {
      const { store } = fixture();
      const heard: string[] = [];
      const stop = await store.listen('jobChanged', (payload) => heard.push(payload));
      const deaf = await store.listen('jobChanged', () => heard.push('never'));
      await deaf();
      await Promise.all([
        store.notify('jobChanged', 'a'),
        store.notify('jobChanged', 'b'),
        store.notify('jobChanged', 'a'),
        store.notify('cancel', 'c'),
      ]);
      await expect.poll(() => heard).toEqual(['a', 'b']);
      await stop();
    });

    it('answers a ping, and names a fault of ours as it is', async () => {
      const { store } = fixture();
      await store.ping();
      const secret = 'a prompt that no log may hold';
      const wrong = storageErrors(() => store.db.execute(sql`select ${secret}::int`));
      const error = await wrong.catch((thrown: unknown) => thrown);
      expect(storageDown(error)).toBeNull();
      expect(error).toMatchObject({ code: '22P02' });
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
        const { store, settings } = fixture();
        const other = await openStore(settings);
        const heard: string[] = [];
        const stop = await store.listen('jobAvailable', (payload) => heard.push(payload));
        await other.notify('jobAvailable', 'ada');
        await expect.poll(() => heard, { timeout: 10_000 }).toEqual(['ada']);
        const broken = await other.db
          .select({ pid: sql`pg_terminate_backend(pid)` })
          .from(sql`pg_stat_activity`)
          .where(sql`datname = current_database() and query like 'listen %'`);
        expect(broken).toHaveLength(1);
        const again = async () => {
          await other.notify('jobAvailable', 'bob');
          return heard.at(-1);
        };
        await expect.poll(again, { timeout: 10_000 }).toBe('bob');
        await stop();
        await other.close();
      },
    );

    it('is down when it is closed, and keeps what it was given', async () => {
      const { store, settings } = fixture();
      if (engine === 'pglite') {
        await expect(openStore(settings)).rejects.toThrow(
          new RegExp(`in use by process ${process.pid}\\. Stop that process`),
        );
      }
      await store.db.insert(schema.settings).values({ name: 'a', value: 'b' });
      await store.close();
      const work = storageErrors(() => store.db.execute(sql`select 1`));
      await expect(work).rejects.toMatchObject({ code: 'STORAGE_DOWN', status: 503 });
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

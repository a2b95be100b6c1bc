/** @module-tag full */

import { cpSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { sql } from 'drizzle-orm';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../../lib/contract/testing/folder';
import { testCaller, testJob, testJobs } from '../testing/jobs';
import { pgliteTemplate } from '../testing/pglite';
import { withStore } from '../testing/store';
import { openStore } from './index';
import { chmodAll, clearDead, copyPrepared } from './pglite';
import { jobs } from './schema';

withStore('pglite', (fixture) => {
  it('reuses the space of old rows: the table does not grow with every change', async () => {
    const { db } = fixture().store;
    const { submit } = testJobs(fixture().store);
    for (let index = 0; index < 8; index += 1) await submit(testJob(testCaller('ada')));
    const size = async () => {
      const [row] = await db
        .select({ bytes: sql<string>`pg_relation_size('jobs')`.mapWith(Number) })
        .from(sql`(select 1) as one`);
      return row?.bytes ?? 0;
    };
    // Indexed, so that no old row is of use to the next by itself.
    const change = () => db.update(jobs).set({ leaseUntil: sql`now()`, status: 'processing' });
    const wear = async () => {
      for (let index = 0; index < 40; index += 1) await change();
    };
    await wear();
    // The database counts its dead rows once a second.
    await expect.poll(() => clearDead(db), { timeout: 20_000 }).toContain('jobs');
    const before = await size();
    expect(before).toBeGreaterThan(0);
    await wear();
    expect(await size()).toBeLessThanOrEqual(before);
  });
});

const folder = temporaryFolder();

it('a prepared database is copied whole, once, also after a copy that was cut off', async () => {
  // As in an image whose files nobody may write.
  const prepared = path.join(folder(), 'prepared');
  cpSync(path.join(await pgliteTemplate(), 'db'), prepared, { recursive: true });
  await chmodAll(prepared, 0o555);
  const data = path.join(folder(), 'db');
  mkdirSync(`${data}.part`);
  writeFileSync(path.join(`${data}.part`, 'half'), 'of an earlier copy');
  await copyPrepared(data, prepared);
  expect(() => statSync(`${data}.part`)).toThrow('ENOENT');
  expect(() => statSync(path.join(data, 'half'))).toThrow('ENOENT');
  if (process.platform !== 'win32') {
    for (const name of ['', 'base', 'PG_VERSION']) {
      expect(statSync(path.join(data, name)).mode & 0o777).toBe(0o700);
    }
  }
  await chmodAll(prepared, 0o755);

  const settings = { KINORA_DATA: folder() };
  const store = await openStore(settings);
  await store.db.execute(sql`insert into settings (name, value) values ('a', 'b')`);
  await store.close();

  await copyPrepared(data, prepared);
  const again = await openStore(settings);
  const kept = await again.db.execute(sql`select value from settings where name = 'a'`);
  expect((kept as { rows: unknown[] }).rows).toEqual([{ value: 'b' }]);
  await again.close();
});

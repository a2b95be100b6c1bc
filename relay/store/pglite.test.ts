/** @module-tag full */
import { sql } from 'drizzle-orm';
import { expect, it } from 'vitest';
import { testCaller, testJob, testJobs } from '../testing/jobs';
import { withStore } from '../testing/store';
import { clearDead } from './pglite';
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

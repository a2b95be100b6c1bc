/** @module-tag full */

import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { measureClaims } from './testing/idle-workers';
import { startNodeProcess } from './testing/node-process';
import { startPostgres } from './testing/postgres';

/** `npm run soak` has a thousand workers; a test run has fewer. */
const [count, jobs] = process.env.KINORA_SOAK ? [1000, 60] : [100, 6];

const ends: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const end of ends.reverse()) await end();
});

test.each([
  ['one node with the embedded database', ['a']],
  ['two nodes with PostgreSQL', ['a', 'b']],
])(
  '%s: of idle workers that come together, each job is given to one',
  async (name, nodes) => {
    const folder = await mkdtemp(path.join(os.tmpdir(), 'kinora-idle-'));
    ends.push(() => rm(folder, { recursive: true, force: true }));
    const postgres = nodes.length > 1 ? await startPostgres() : null;
    if (postgres) ends.push(() => postgres.stop());
    const settings = {
      PORT: '0',
      KINORA_ALLOW_PRIVATE: '1',
      KINORA_LOG: 'silent',
      KINORA_REQUESTS_PER_ADDRESS: '0',
      KINORA_SUBMITS_PER_MINUTE: '0',
      KINORA_JOBS_PER_KEY: '0',
      ...(postgres && { DATABASE_URL: postgres.url, KINORA_PUBLIC_URL: 'https://kinora.example' }),
    };
    const origins: string[] = [];
    let keys: Awaited<ReturnType<typeof startNodeProcess>>['firstStart'] = null;
    for (const node of nodes) {
      const started = await startNodeProcess({ ...settings, KINORA_DATA: path.join(folder, node) });
      ends.push(() => started.stop());
      origins.push(started.origin);
      keys ??= started.firstStart;
    }
    if (!keys) throw new Error('The first start told no keys.');
    const { workerToken: token, apiKey } = keys;
    const figures = await measureClaims({ origins, token, apiKey, count, jobs });
    process.stdout.write(`${name}, ${count} idle workers: ${JSON.stringify(figures)}\n`);
    expect(figures.refused).toBe(0);
  },
  300_000,
);

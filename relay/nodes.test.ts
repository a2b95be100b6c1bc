/** @module-tag full */

import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { sql } from 'drizzle-orm';
import { afterAll, expect, test } from 'vitest';
import { startBucket } from './files/testing/s3';
import { openStore } from './store';
import { startNodeProcess } from './testing/node-process';
import { startPostgres } from './testing/postgres';
import { ProtocolWorker } from './testing/protocol-worker';
import { startReceiver } from './testing/receiver';
import { submit, untilEnded } from './testing/submitter';

const ends: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const end of ends.reverse()) await end();
});

test('two nodes, workers on both, one killed in mid-job: nothing lost, nothing twice', async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'kinora-nodes-'));
  ends.push(() => rm(folder, { recursive: true, force: true }));
  const [postgres, bucket, receiver] = await Promise.all([
    startPostgres(),
    startBucket(),
    startReceiver(),
  ]);
  ends.push(() => postgres.stop(), bucket.stop, receiver.close);
  const settings = (name: string) => ({
    PORT: '0',
    KINORA_DATA: path.join(folder, name),
    DATABASE_URL: postgres.url,
    ...bucket.settings,
    KINORA_PUBLIC_URL: 'https://kinora.example',
    KINORA_LEASE_SECONDS: '2',
    KINORA_HEARTBEAT_SECONDS: '0.3',
    KINORA_SWEEP_SECONDS: '0.3',
    KINORA_ALLOW_PRIVATE: '1',
    KINORA_LOG: 'silent',
  });
  const first = await startNodeProcess(settings('a'));
  ends.push(() => first.kill());
  if (!first.firstStart) throw new Error('The first start told no keys.');
  const { apiKey, workerToken: token } = first.firstStart;
  const second = await startNodeProcess(settings('b'));
  ends.push(() => second.stop());
  expect(second.firstStart).toBeNull();

  const over = new AbortController();
  const [onFirst, onSecond] = [first, second].map(
    ({ origin }) => new ProtocolWorker({ origin, token, workMs: 300 }),
  ) as [ProtocolWorker, ProtocolWorker];
  const working = [onFirst, onSecond].map((worker) => worker.run(over.signal));
  const jobs = await Promise.all(
    Array.from({ length: 12 }, (_, index) =>
      submit((index % 2 ? first : second).origin, apiKey, receiver.url),
    ),
  );
  const ids = jobs.map((job) => job?.id ?? 'none');
  // Both have worked, and the first node's worker is in the middle of its next job.
  await expect
    .poll(() => Math.min(onFirst.completed.length, onSecond.completed.length), { timeout: 60_000 })
    .toBeGreaterThanOrEqual(1);
  await first.kill();

  const ended = await untilEnded(second.origin, apiKey, ids, 120_000);
  over.abort();
  await Promise.all(working);
  expect(ended.map(({ status, error }) => status + error)).toEqual(ids.map(() => 'completed'));
  const told = () => receiver.received.map(({ body }) => JSON.parse(body).id as string);
  // One that the first node had in hand is free again when its claim ends, after 30 s: they are over.
  const store = await openStore({ KINORA_DATA: folder, DATABASE_URL: postgres.url });
  ends.push(() => store.close());
  await store.db.execute(sql`update deliveries set next_at = now() where status = 'due'`);
  await expect.poll(() => new Set(told()).size, { timeout: 90_000 }).toBe(ids.length);
  // A delivery that was under way when the node died may come again, under the same webhook-id.
  const deliveries = new Set(receiver.received.map(({ headers }) => headers['webhook-id']));
  expect(deliveries.size).toBe(ids.length);
  for (const id of onSecond.completed) expect(onFirst.completed).not.toContain(id);

  // What the first node took in, the second serves.
  for (const { outputs } of ended) {
    const [output = ''] = outputs;
    const { pathname, search } = new URL(output);
    const video = await fetch(`${second.origin}${pathname}${search}`, {
      headers: { Range: 'bytes=4-7' },
    });
    expect(video.status).toBe(206);
    expect(await video.text()).toBe('ftyp');
  }
}, 200_000);

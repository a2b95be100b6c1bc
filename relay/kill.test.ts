/** @module-tag full */

import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { eq } from 'drizzle-orm';
import { Webhook } from 'standardwebhooks';
import { afterAll, expect, test } from 'vitest';
import { freePort } from '../lib/cli/process';
import { predictionCodes } from '../lib/contract/v3';
import { openStore } from './store';
import { deliveries } from './store/schema';
import { startNodeProcess } from './testing/node-process';
import { ProtocolWorker } from './testing/protocol-worker';
import { type Receiver, startReceiver } from './testing/receiver';
import { keepSubmitting, untilEnded } from './testing/submitter';

/** `npm run soak` kills ten times; a test run does it twice. */
const rounds = process.env.KINORA_SOAK ? 10 : 2;
/** Submissions of a round before the kill: time says little on a busy machine. */
const perRound = 15;

const folders: string[] = [];
const receivers: Receiver[] = [];
afterAll(async () => {
  for (const receiver of receivers) await receiver.close();
  for (const folder of folders) await rm(folder, { recursive: true, force: true });
});

/** Settings under which leases and deliveries come back within seconds. */
const impatient = {
  KINORA_LEASE_SECONDS: '1',
  KINORA_HEARTBEAT_SECONDS: '0.3',
  KINORA_SWEEP_SECONDS: '0.3',
  KINORA_ALLOW_PRIVATE: '1',
  KINORA_LOG: 'silent',
  KINORA_SUBMITS_PER_MINUTE: '0',
  KINORA_READS_PER_MINUTE: '0',
  KINORA_REQUESTS_PER_ADDRESS: '0',
  KINORA_JOBS_PER_KEY: '0',
};

test(`killed ${rounds} times under load, the server loses nothing that it acknowledged`, async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'kinora-kill-'));
  folders.push(folder);
  const receiver = await startReceiver();
  receivers.push(receiver);
  const settings = { ...impatient, KINORA_DATA: folder };

  // Hardly anybody else gets it while the server is dead.
  const port = String(await freePort());
  let node = await startNodeProcess({ ...settings, PORT: port });
  const { origin } = node;
  if (!node.firstStart) throw new Error('The first start told no keys.');
  const { apiKey, workerToken } = node.firstStart;

  const acknowledged = new Set<string>();
  const over = new AbortController();
  const workers = [1, 2].map(() => new ProtocolWorker({ origin, token: workerToken, workMs: 100 }));
  const working = workers.map((worker) => worker.run(over.signal));
  for (let round = 0; round < rounds; round += 1) {
    const load = new AbortController();
    const submitting = keepSubmitting(origin, apiKey, receiver.url, acknowledged, load.signal);
    const enough = acknowledged.size + perRound;
    await expect.poll(() => acknowledged.size, { timeout: 60_000 }).toBeGreaterThanOrEqual(enough);
    await node.kill();
    load.abort();
    await submitting;
    node = await startNodeProcess({ ...settings, PORT: port });
  }

  const ended = await untilEnded(origin, apiKey, acknowledged, 300_000);
  over.abort();
  await Promise.all(working);
  expect(ended).toHaveLength(acknowledged.size);
  // Nothing but three cut attempts keeps a job from its video, and that befalls few.
  const completed = ended.filter(({ status }) => status === 'completed');
  for (const { status, code, error } of ended) {
    if (status === 'completed') continue;
    expect({ code, error }).toEqual({
      code: predictionCodes.unavailable,
      error: expect.stringContaining('after 3 attempts'),
    });
  }
  expect(completed.length).toBeGreaterThan(ended.length / 2);
  for (const { outputs } of completed) expect(outputs).toHaveLength(1);

  const secret = await fetch(`${origin}/api/v3/webhook/secret`, {
    headers: { Authorization: `Bearer ${apiKey}` },
  }).then((response) => response.json());
  const [first] = receiver.received;
  if (!first) throw new Error('No webhook came.');
  const signed = {
    'webhook-id': String(first.headers['svix-id']),
    'webhook-timestamp': String(first.headers['svix-timestamp']),
    'webhook-signature': String(first.headers['svix-signature']),
  };
  expect(() => new Webhook(secret.data.secret).verify(first.body, signed)).not.toThrow();
  expect(await node.stop()).toBe(0);

  // Each webhook has come, or is still to be sent: one that a dead process had in hand comes after its claim.
  const told = new Set(receiver.received.map(({ body }) => JSON.parse(body).id as string));
  const store = await openStore({ KINORA_DATA: folder });
  const due = await store.db.select().from(deliveries).where(eq(deliveries.status, 'due'));
  await store.close();
  for (const { jobId } of due) told.add(jobId);
  expect([...acknowledged].filter((id) => !told.has(id))).toEqual([]);
}, 900_000);

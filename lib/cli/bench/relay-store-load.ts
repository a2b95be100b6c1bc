import { randomBytes } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { pino } from 'pino';
import type { Caller } from '../../../relay/access/caller';
import { readConfig } from '../../../relay/config';
import { type ClaimedJob, createJobs } from '../../../relay/jobs';
import type { NewJob } from '../../../relay/jobs/submit';
import { type JobRow, jobs } from '../../../relay/store/schema';
import type { Store } from '../../../relay/store/store';
import { testJob } from '../../../relay/testing/jobs';
import { safetySchema } from '../../contract';
import type { WorkerDeclaration } from '../../contract/v3';
import { measure, type Rate } from './meter';

/** What is measured, in this order. */
export const rateNames = ['submissions', 'claims', 'completes + outbox', 'result reads'] as const;
export type Rates = Record<(typeof rateNames)[number], Rate>;

/** Keys that share the queue: a key has at most 1000 unfinished jobs as it comes. */
export const backlogKeys = 200;
const owner = 'bench';

function caller(index: number): Caller {
  return {
    keyId: `key${index % backlogKeys}`,
    kind: 'api',
    owner,
    name: 'bench',
    scopes: [],
    shared: false,
  };
}

function newJob(index: number): NewJob {
  const id = randomBytes(16).toString('hex');
  return testJob(caller(index), {
    id,
    webhookUrl: 'https://example.com/hook',
    input: {
      image: `https://example.com/${id}.png`,
      prompt: 'A paper boat drifts down a brook in the morning, the camera follows it slowly.',
    },
    image: { key: `images/${id}`, type: 'image/png', bytes: 500_000 },
  });
}

const worker: WorkerDeclaration = {
  worker_id: '0'.repeat(32),
  name: 'bench',
  model: 'wan2.2-ti2v-5b',
  precision: 'int8',
  backend: 'webgpu',
  sizes: ['1280*720', '720*1280'],
  loras: true,
  max_duration: 10,
  safety_checker: 'ready',
  prompt_optimizer: false,
};

/**
 * Submits, claims, completes and reads `count` jobs through the same functions that the server uses,
 * with a listener as held claims have one.
 */
export async function measureStore(
  store: Store,
  { count, concurrency }: { count: number; concurrency: number },
): Promise<Rates> {
  const bench = createJobs({
    store,
    config: readConfig({}),
    log: pino({ level: 'silent' }),
    outboxRow: (job) => ({
      id: `msg_${job.id}`,
      jobId: job.id,
      owner: job.owner,
      url: job.webhookUrl ?? '',
      body: JSON.stringify({ id: job.id, input: job.input, status: job.status }),
    }),
  });
  const stop = await store.listen('jobAvailable', () => undefined);
  const claimed: ClaimedJob[] = [];
  const waiting: JobRow[] = [];
  const rates: Rates = {
    submissions: await measure(count, concurrency, async (index) => {
      waiting.push(await bench.submit(newJob(index)));
    }),
    claims: await measure(count, concurrency, async (index) => {
      const job = await bench.claimNext(caller(index), worker);
      if (!job) throw new Error('A claim found nothing.');
      claimed.push(job);
    }),
    'completes + outbox': await measure(count, concurrency, async (index) => {
      const job = claimed[index];
      if (!job) throw new Error('Fewer jobs were claimed than submitted.');
      await bench.complete(job.id, job.leaseToken, {
        sha256: 'a'.repeat(64),
        bytes: 4_000_000,
        seed: 1,
        inference_ms: 60_000,
        model: worker.model,
        precision: worker.precision,
        encoder: 'full',
        safety: safetySchema.parse({ status: 'clear', score: 0.1, frames: [0.1] }),
        prompt_optimization: null,
        outputKey: `outputs/${job.id}.mp4`,
      });
    }),
    // Half of what is polled waits; its place in the queue is part of the answer.
    'result reads': await measure(count, concurrency, async (index) => {
      const from = index % 2 === 0 ? waiting : claimed;
      const job = await bench.get(from[index]?.id ?? '', owner);
      if (job?.status === 'created') await bench.position(job);
    }),
  };
  await stop();
  return rates;
}

/** Fills the queue in few statements. */
export async function fillQueue(store: Store, count: number): Promise<void> {
  const { input, image, model } = newJob(0);
  const config = readConfig({});
  await store.db.execute(sql`
    insert into ${jobs} (id, owner, key_id, model, input, seed, webhook_url, ready, size, duration,
      models, precisions, image)
    select md5('backlog' || n), ${owner}, 'key' || (n % ${backlogKeys}), ${model},
      ${JSON.stringify(input)}::jsonb, n, 'https://example.com/hook', true, ${input.size},
      ${input.duration}, ${textArray(config.KINORA_SERVING_MODELS)},
      ${textArray(config.KINORA_SERVING_PRECISIONS)}, ${JSON.stringify(image)}::jsonb
    from generate_series(1, ${count}::int) as n`);
}

function textArray(values: readonly string[]) {
  return sql`array[${sql.join(
    values.map((value) => sql`${value}`),
    sql`, `,
  )}]::text[]`;
}

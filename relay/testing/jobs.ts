import { randomBytes } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { pino } from 'pino';
import { safetySchema } from '../../lib/contract';
import type { Completion, WorkerDeclaration } from '../../lib/contract/v3';
import type { Caller } from '../access/caller';
import { type Config, readConfig } from '../config';
import { createJobs } from '../jobs';
import type { Jobs } from '../jobs/index';
import type { NewJob } from '../jobs/submit';
import type { Store } from '../store';
import { jobs } from '../store/schema';
import type { Webhooks } from '../webhooks/webhooks';

/** Jobs over a store, with a webhook row for every job that asked for one. */
export function testJobs(store: Store, settings: Partial<Config> = {}): Jobs {
  const outboxRow: Webhooks['outboxRow'] = (job, event) =>
    job.webhookUrl === null || event !== 'completed'
      ? null
      : {
          id: `msg_${job.id}`,
          jobId: job.id,
          owner: job.owner,
          url: job.webhookUrl,
          body: job.status,
        };
  const config = { ...readConfig({}), ...settings };
  return createJobs({ store, config, outboxRow, log: pino({ level: 'silent' }) });
}

/** A caller with a key, or a worker's token, of its own owner. */
export function testCaller(owner: string, settings: Partial<Caller> = {}): Caller {
  return {
    keyId: `key-${owner}`,
    owner,
    scopes: [],
    shared: false,
    ...settings,
  };
}

/** A job that may be claimed. */
export function testJob(
  caller: Caller,
  {
    input,
    ...settings
  }: Partial<Omit<NewJob, 'input'>> & { input?: Partial<NewJob['input']> } = {},
): NewJob {
  return {
    id: randomBytes(16).toString('hex'),
    caller,
    model: 'kinora/wan-2.2/i2v-720p-lora',
    webhookUrl: null,
    image: { key: 'images/a.png', type: 'image/png', bytes: 100 },
    loras: [],
    ready: true,
    idempotency: null,
    ...settings,
    input: {
      image: 'https://example.com/a.png',
      prompt: 'A boat.',
      negative_prompt: '',
      loras: [],
      size: '1280*720',
      num_inference_steps: 30,
      duration: 5,
      guidance_scale: 5,
      flow_shift: 5,
      seed: -1,
      enable_prompt_optimizer: false,
      enable_safety_checker: true,
      ...input,
    },
  };
}

/** A worker that can do everything. */
export function testWorker(settings: Partial<WorkerDeclaration> = {}): WorkerDeclaration {
  return {
    worker_id: randomBytes(16).toString('hex'),
    name: 'test',
    model: 'mini',
    precision: 'f32',
    backend: 'wasm',
    sizes: ['1280*720', '720*1280'],
    loras: true,
    max_duration: 10,
    knows: ['loop', 'last_image', 'last_image_at', 'upscale'],
    safety_checker: 'ready',
    prompt_optimizer: true,
    ...settings,
  };
}

/** A video that was checked and is clear. */
export const clearSafety = safetySchema.parse({
  status: 'clear',
  score: 0.1,
  input: 0.1,
  frames: [0.1, 0.1],
  model: 'a/checker',
  sha256: 'c'.repeat(64),
});

/** A result as a worker reports it. */
export function testResult(
  sha256 = 'a'.repeat(64),
): Omit<Completion, 'lease_token'> & { outputKey: string } {
  return {
    sha256,
    bytes: 1000,
    seed: 1,
    inference_ms: 1500,
    model: 'mini',
    precision: 'f32',
    encoder: 'full',
    safety: clearSafety,
    prompt_optimization: null,
    outputKey: 'outputs/a.mp4',
  };
}

/** A heartbeat with nothing to say. */
export const testHeartbeat = {
  phase: null,
  step: 1,
  steps: 30,
  clip: 0,
  clips: 1,
  seconds_remaining: null,
} as const;

/** Keys of {@link fillQueue}: a key has at most 1000 unfinished jobs as it comes. */
const backlogKeys = 200;

/** Puts `count` jobs of the owner `bench` into the queue, in few statements. */
export async function fillQueue(store: Store, count: number): Promise<void> {
  const owner = 'bench';
  const { input, model, image } = testJob(testCaller(owner));
  const config = readConfig({});
  const textArray = (values: readonly string[]) =>
    sql`array[${sql.join(
      values.map((value) => sql`${value}`),
      sql`, `,
    )}]::text[]`;
  await store.db.execute(sql`
    insert into ${jobs} (id, owner, key_id, model, input, seed, webhook_url, ready, size, duration,
      models, precisions, image)
    select md5('backlog' || n), ${owner}, 'key' || (n % ${backlogKeys}), ${model},
      ${JSON.stringify(input)}::jsonb, n, 'https://example.com/hook', true, ${input.size},
      ${input.duration}, ${textArray(config.KINORA_SERVING_MODELS)},
      ${textArray(config.KINORA_SERVING_PRECISIONS)}, ${JSON.stringify(image)}::jsonb
    from generate_series(1, ${count}::int) as n`);
}

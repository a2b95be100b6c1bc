import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  index,
  integer,
  jsonb,
  pgTable,
  text,
  timestamp,
  uniqueIndex,
} from 'drizzle-orm/pg-core';
import type { Applied, Noise, PromptOptimization, Safety, SafetyStatus } from '../../lib/contract';
import type {
  Heartbeat,
  ImageField,
  LoraNeed,
  PredictionCode,
  PredictionInput,
  PredictionStatus,
  WebhookEvent,
  WorkerDeclaration,
  WorkerLora,
} from '../../lib/contract/v3';

/**
 * One schema for PGlite and PostgreSQL. Migrations are made from it by `npm run migrations`.
 *
 * Descending index columns have `nullsFirst()`: that is what a plain `ORDER BY … DESC` means in PostgreSQL.
 * Drizzle's own default, `NULLS LAST`, would make an index that no such query can use.
 */

const instant = (name: string) => timestamp(name, { withTimezone: true, precision: 3 });

/** A person or a team: keys, workers and jobs belong to one. */
export const owners = pgTable('owners', {
  name: text('name').primaryKey(),
  /** `whsec_` + base64 of 32 bytes. */
  webhookSecret: text('webhook_secret').notNull(),
  createdAt: instant('created_at').notNull().defaultNow(),
});

/** API keys and worker tokens: only a hash of the secret is kept. */
export const keys = pgTable('keys', {
  /** Eight characters, part of the key itself. */
  id: text('id').primaryKey(),
  kind: text('kind').$type<'api' | 'worker' | 'sign-in'>().notNull(),
  owner: text('owner')
    .notNull()
    .references(() => owners.name),
  name: text('name').notNull(),
  /** SHA-256 of the whole key, hex. */
  hash: text('hash').notNull(),
  last4: text('last4').notNull(),
  scopes: text('scopes').array().notNull(),
  /** An API key's jobs may go to other owners' workers; a worker takes other owners' jobs. */
  shared: boolean('shared').notNull().default(false),
  /** Version of the terms of use that was accepted when it was made; null where none was. */
  termsVersion: text('terms_version'),
  createdAt: instant('created_at').notNull().defaultNow(),
  expiresAt: instant('expires_at'),
  revokedAt: instant('revoked_at'),
  lastUsedAt: instant('last_used_at'),
});

export type JobProgress = Pick<Heartbeat, 'phase' | 'step' | 'steps' | 'clip' | 'clips'> & {
  readonly secondsRemaining: number | null;
};

/** Places of the files of a job. */
export interface JobImage {
  /** Key of the blob store. */
  readonly key: string;
  readonly type: string;
  readonly bytes: number;
}

/** The column of each image of a submission. */
export const imageColumns = { image: 'image', last_image: 'lastImage' } as const satisfies Record<
  ImageField,
  string
>;

/** An adapter of a job, resolved as far as the server does it. */
export type JobLora = {
  readonly path: string;
  readonly scale: number;
  /** The transformer that it is for, where the submission says so. */
  readonly noise?: Noise;
  /** What it needs of a worker, by its header; absent until that was looked at, null where it does not tell. */
  readonly need?: LoraNeed | null;
} & (
  | Pick<Extract<WorkerLora, { from: 'hub' }>, 'from' | 'repository' | 'file'>
  | { readonly from: 'link'; readonly url: string }
  | { readonly from: 'upload'; readonly uploadId: string }
);

export const jobs = pgTable(
  'jobs',
  {
    /** 32 lower-case hex characters. */
    id: text('id').primaryKey(),
    owner: text('owner').notNull(),
    keyId: text('key_id').notNull(),
    /** Other owners' shared workers may take it. */
    shared: boolean('shared').notNull().default(false),
    /** `{provider}/{family}/{variant}` as asked. */
    model: text('model').notNull(),
    input: jsonb('input').$type<PredictionInput>().notNull(),
    /** Drawn at submission. */
    seed: bigint('seed', { mode: 'number' }).notNull(),
    webhookUrl: text('webhook_url'),
    /** What the webhook is sent for, of `input`; null where the submission names nothing: its end. */
    webhookEvents: jsonb('webhook_events')
      .$type<readonly WebhookEvent[]>()
      .generatedAlwaysAs(sql`input -> 'webhook_events'`),
    /** `Idempotency-Key` of the submission; null without one, and when another job has taken it over. */
    idempotencyKey: text('idempotency_key'),
    /** SHA-256 over model, webhook and body: another submission under the same key is refused. */
    idempotencyHash: text('idempotency_hash'),

    // Columns that a claim reads
    status: text('status').$type<PredictionStatus>().notNull().default('created'),
    /** False while images and adapters are being fetched and checked. */
    ready: boolean('ready').notNull().default(false),
    createdAt: instant('created_at').notNull().defaultNow(),
    size: text('size').notNull(),
    duration: integer('duration').notNull(),
    needsLora: boolean('needs_lora').notNull().default(false),
    /** What `input` asks for and `loras` need, in a column of its own, as an input may have 80 kB. */
    needs: text('needs')
      .array()
      .notNull()
      .generatedAlwaysAs(
        sql`array_remove(array[case when (input ->> 'loop')::boolean then 'loop' end, case when input -> 'last_image' is not null then 'last_image' end, case when input -> 'last_image_at' is not null then 'last_image_at' end, case when input ->> 'upscale' = '2' then 'upscale' end, case when (input ->> 'smooth')::boolean then 'smooth' end, case when loras @> '[{"need": "lora_5b"}]' then 'lora_5b' end, case when loras @> '[{"need": "lora_14b"}]' then 'lora_14b' end], null)`,
      ),
    needsChecker: boolean('needs_checker')
      .notNull()
      .generatedAlwaysAs(sql`coalesce((input ->> 'enable_safety_checker')::boolean, false)`),
    needsOptimizer: boolean('needs_optimizer')
      .notNull()
      .generatedAlwaysAs(sql`coalesce((input ->> 'enable_prompt_optimizer')::boolean, false)`),
    /** Manifest ids that may serve it; `*` for any. */
    models: text('models').array().notNull(),
    precisions: text('precisions').array().notNull(),

    // Files
    image: jsonb('image').$type<JobImage>(),
    /** Null without one, and until it is there. */
    lastImage: jsonb('last_image').$type<JobImage>(),
    loras: jsonb('loras').$type<readonly JobLora[]>().notNull().default([]),
    /** A node fetches the images; after this time another may. */
    intakeUntil: instant('intake_until'),
    intakeAttempts: integer('intake_attempts').notNull().default(0),
    /** How often an image could not be fetched for a reason that may pass. */
    intakeFailures: integer('intake_failures').notNull().default(0),
    /** The last such reason, one sentence. */
    intakeError: text('intake_error').notNull().default(''),
    /** When it is fetched again; null where it never failed. */
    intakeRetryAt: instant('intake_retry_at'),

    // The running attempt
    attempt: integer('attempt').notNull().default(0),
    /** How often a worker handed it back; the first 20 times give the attempt back too. */
    releases: integer('releases').notNull().default(0),
    /** When the latest attempt failed in a retryable way: the job is not given out at once. */
    failedAt: instant('failed_at'),
    /** The worker of that attempt: `{worker token} {worker id}`. */
    failedWorker: text('failed_worker'),
    leaseToken: text('lease_token'),
    leaseUntil: instant('lease_until'),
    deadline: instant('deadline'),
    workerId: text('worker_id'),
    workerToken: text('worker_token'),
    progress: jsonb('progress').$type<JobProgress>(),

    // How it ended
    finishedAt: instant('finished_at'),
    error: text('error').notNull().default(''),
    code: integer('code').$type<PredictionCode>(),
    inferenceMs: integer('inference_ms').notNull().default(0),
    /** Parts of it; null where the worker did not tell. */
    samplingMs: integer('sampling_ms'),
    decodeMs: integer('decode_ms'),
    /** What the profile made of the parameters; null likewise. */
    applied: jsonb('applied').$type<Applied>(),
    outputKey: text('output_key'),
    outputBytes: bigint('output_bytes', { mode: 'number' }),
    outputSha256: text('output_sha256'),
    /** Part of the output's signature: a new one makes every link to it stale. */
    outputNonce: text('output_nonce'),
    /** When the output is removed. */
    outputExpiresAt: instant('output_expires_at'),
    ranModel: text('ran_model'),
    ranPrecision: text('ran_precision'),
    /** What is known of the output's content; null unless completed. */
    safety: text('safety').$type<SafetyStatus>(),
    /** The worker's report of it. */
    safetyRecord: jsonb('safety_record').$type<Safety>(),
    /** Null unless completed, and where the job did not ask for it. */
    promptOptimization: jsonb('prompt_optimization').$type<PromptOptimization>(),
  },
  (table) => [
    index('jobs_waiting').on(table.owner, table.createdAt).where(sql`status = 'created' and ready`),
    index('jobs_waiting_shared')
      .on(table.createdAt)
      .where(sql`status = 'created' and ready and shared`),
    index('jobs_intake')
      .on(table.owner, table.createdAt)
      .where(sql`status = 'created' and not ready`),
    index('jobs_leases').on(table.leaseUntil).where(sql`status = 'processing'`),
    index('jobs_deadlines').on(table.deadline).where(sql`status = 'processing'`),
    // With the id it has one order also where times are equal: a page begins where another ended.
    index('jobs_of_owner').on(
      table.owner,
      table.createdAt.desc().nullsFirst(),
      table.id.desc().nullsFirst(),
    ),
    index('jobs_unfinished').on(table.keyId).where(sql`status in ('created', 'processing')`),
    uniqueIndex('jobs_idempotency')
      .on(table.keyId, table.idempotencyKey)
      .where(sql`idempotency_key is not null`),
  ],
);
export type JobRow = typeof jobs.$inferSelect;
export type NewJobRow = typeof jobs.$inferInsert;

export const previews = pgTable('previews', {
  jobId: text('job_id')
    .primaryKey()
    .references(() => jobs.id, { onDelete: 'cascade' }),
  step: integer('step').notNull(),
  /** Data URI. */
  image: text('image').notNull(),
});

/**
 * The webhook outbox: the row of a job's end is written in the transaction of the terminal status. A job has at
 * most one row of each event; a later `progress` replaces the earlier one.
 */
export const deliveries = pgTable(
  'deliveries',
  {
    /** `msg_` + 32 hex; the `webhook-id` of every attempt. */
    id: text('id').primaryKey(),
    jobId: text('job_id').notNull(),
    event: text('event').$type<WebhookEvent>().notNull().default('completed'),
    owner: text('owner').notNull(),
    url: text('url').notNull(),
    /** The exact bytes that are signed and sent, written before the first attempt. */
    body: text('body').notNull(),
    status: text('status').$type<'due' | 'delivered' | 'exhausted'>().notNull().default('due'),
    attempts: integer('attempts').notNull().default(0),
    /** Attempts before the latest replay. */
    attemptsBefore: integer('attempts_before').notNull().default(0),
    nextAt: instant('next_at').notNull().defaultNow(),
    /** HTTP status of the last answer; null where there was none. */
    lastStatus: integer('last_status'),
    /** First 1 kB of the last answer, or why there was none. */
    lastAnswer: text('last_answer').notNull().default(''),
    createdAt: instant('created_at').notNull().defaultNow(),
    finishedAt: instant('finished_at'),
  },
  (table) => [
    uniqueIndex('deliveries_event').on(table.jobId, table.event),
    index('deliveries_due').on(table.nextAt).where(sql`status = 'due'`),
    index('deliveries_finished').on(table.finishedAt).where(sql`finished_at is not null`),
    index('deliveries_of_owner').on(table.owner, table.createdAt.desc().nullsFirst()),
  ],
);
export type DeliveryRow = typeof deliveries.$inferSelect;

/** Public links to results. The row of a link that has ended stays, so that its page can say so. */
export const shares = pgTable(
  'shares',
  {
    /** 32 lower-case hex characters, random: the id is the permission. */
    id: text('id').primaryKey(),
    /** Null when the prediction was deleted: that ends the link. */
    jobId: text('job_id').references(() => jobs.id, { onDelete: 'set null' }),
    withPrompt: boolean('with_prompt').notNull(),
    withSettings: boolean('with_settings').notNull(),
    withImage: boolean('with_image').notNull(),
    allowIndex: boolean('allow_index').notNull(),
    createdAt: instant('created_at').notNull().defaultNow(),
    /** Null: it ends with the video. */
    expiresAt: instant('expires_at'),
    revokedAt: instant('revoked_at'),
  },
  (table) => [
    // A prediction has one link at most that is not revoked; the foreign key needs the index on the others too.
    uniqueIndex('shares_current').on(table.jobId).where(sql`revoked_at is null`),
    index('shares_of_job').on(table.jobId),
  ],
);
export type ShareRow = typeof shares.$inferSelect;

/** Every stored file: what owners upload, and images, videos and posters of jobs. */
export const uploads = pgTable(
  'uploads',
  {
    /** 32 hex characters. */
    id: text('id').primaryKey(),
    owner: text('owner').notNull(),
    keyId: text('key_id').notNull(),
    /** The job that it belongs to, and is removed with; null for what its owner uploaded. */
    jobId: text('job_id'),
    filename: text('filename').notNull(),
    contentType: text('content_type').notNull(),
    bytes: bigint('bytes', { mode: 'number' }).notNull(),
    sha256: text('sha256'),
    /** Key of the blob store; null until the bytes are there. */
    blobKey: text('blob_key'),
    createdAt: instant('created_at').notNull().defaultNow(),
    expiresAt: instant('expires_at').notNull(),
  },
  (table) => [
    index('uploads_of_owner').on(table.owner, table.filename, table.createdAt.desc().nullsFirst()),
    index('uploads_expiry').on(table.expiresAt),
    index('uploads_of_job').on(table.jobId).where(sql`job_id is not null`),
  ],
);
export type UploadRow = typeof uploads.$inferSelect;

/** Workers that were seen recently, on any node. */
export const workers = pgTable('workers', {
  id: text('id').primaryKey(),
  tokenId: text('token_id').notNull(),
  owner: text('owner').notNull(),
  declaration: jsonb('declaration').$type<WorkerDeclaration>().notNull(),
  state: text('state').$type<'idle' | 'busy' | 'paused'>().notNull(),
  connectedAt: instant('connected_at').notNull().defaultNow(),
  seenAt: instant('seen_at').notNull().defaultNow(),
});
export type WorkerRow = typeof workers.$inferSelect;

/** Values of the installation: its secrets. */
export const settings = pgTable('settings', {
  name: text('name').primaryKey(),
  value: text('value').notNull(),
});

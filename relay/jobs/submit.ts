import { sql } from 'drizzle-orm';
import { resolveSeed } from '../../lib/contract/request';
import { ApiError } from '../../lib/contract/v3';
import type { NewJob } from '../relay';
import { inBatches } from '../store';
import { type JobRow, jobs } from '../store/schema';
import type { Database } from '../store/store';
import { type JobsDependencies, withoutLease } from './context';
import { storable, storableJson } from './text';

/** How long a caller with too many jobs is asked to wait: a video takes minutes. */
const tooManyRetrySeconds = 10;
/** How long the count of a key's jobs is believed, in milliseconds; only other nodes can make it wrong. */
const countedMs = 5000;
/** Keys whose counts are remembered. */
const maxRooms = 10_000;

/**
 * Inserts jobs, those that come at once together.
 *
 * The limit of a key holds exactly for one node; several nodes may together pass it by what they
 * insert within {@link countedMs}.
 *
 * @returns a function that throws ApiError `TOO_MANY_JOBS`
 */
export function createSubmitter({
  store: { db },
  config,
}: Pick<JobsDependencies, 'store' | 'config'>): (job: NewJob) => Promise<JobRow> {
  const limit = config.KINORA_JOBS_PER_KEY;
  /** How many more jobs a key may have, by its last count and what this node inserted since. */
  const rooms = new Map<string, { left: number; readonly countedAt: number }>();

  const insert = inBatches(async (batch: readonly NewJob[]): Promise<(JobRow | ApiError)[]> => {
    const admitted = await admit(batch);
    const rows = await insertRows(
      db,
      config,
      batch.filter((job) => admitted.has(job)),
    ).catch((error: unknown) => {
      // Nobody got the room that was taken for them.
      for (const { caller } of batch) rooms.delete(caller.keyId);
      throw error;
    });
    const inserted = new Map(rows.map((row) => [row.id, row]));
    return batch.flatMap((job) =>
      admitted.has(job) ? (inserted.get(job.id) ?? []) : tooManyJobs(),
    );
  });

  /** Those whose key has room for them. */
  async function admit(batch: readonly NewJob[]): Promise<ReadonlySet<NewJob>> {
    if (limit === 0) return new Set(batch);
    await count(batch);
    const admitted = batch.filter(({ caller }) => {
      const room = rooms.get(caller.keyId);
      if (room === undefined || room.left <= 0) return false;
      room.left -= 1;
      return true;
    });
    return new Set(admitted);
  }

  /**
   * Counts the jobs of keys whose last count is old or used up. A count reads every unfinished job of
   * the key, so it is not made for each: jobs that end meanwhile only make more room than is known.
   */
  async function count(batch: readonly NewJob[]): Promise<void> {
    const wanted = new Map<string, number>();
    for (const { caller } of batch) {
      wanted.set(caller.keyId, (wanted.get(caller.keyId) ?? 0) + 1);
    }
    if (rooms.size > maxRooms) rooms.clear();
    const countedAt = performance.now();
    const keyIds = [...wanted].flatMap(([keyId, jobs]) => {
      const room = rooms.get(keyId);
      const known = room && countedAt - room.countedAt < countedMs && room.left >= jobs;
      return known ? [] : [keyId];
    });
    if (keyIds.length === 0) return;
    const counts = await countUnfinished(db, keyIds, limit);
    for (const keyId of keyIds) {
      rooms.set(keyId, { left: limit - (counts.get(keyId) ?? 0), countedAt });
    }
  }

  return async (job) => {
    const inserted = await insert(job);
    if (inserted instanceof ApiError) throw inserted;
    return inserted;
  };
}

function tooManyJobs(): ApiError {
  return new ApiError('TOO_MANY_JOBS', undefined, {
    headers: { 'Retry-After': String(tooManyRetrySeconds) },
  });
}

/** Unfinished jobs of keys, each counted no further than `limit`, whatever the length of the queue. */
export async function countUnfinished(
  db: Database,
  keyIds: readonly string[],
  limit: number,
): Promise<Map<string, number>> {
  const distinct = [...new Set(keyIds)];
  const result = await db
    .select({
      keyId: sql`k.id`.mapWith(String),
      count: sql`(select count(*) from (
        select 1 from ${jobs} where ${jobs.keyId} = k.id
          and ${jobs.status} in ('created', 'processing') limit ${limit}) as part)::int`.mapWith(
        Number,
      ),
    })
    .from(sql`unnest(${textArray(distinct.map(storable))}) as k(id)`);
  return new Map(result.map(({ keyId, count }) => [keyId, count]));
}

function textArray(values: readonly string[]) {
  const each = values.map((value) => sql`${value}`);
  return sql`array[${sql.join(each, sql`, `)}]::text[]`;
}

/** The columns of a new job and their types, as the JSON of {@link insertRows} carries them. */
const columns = {
  id: 'text',
  owner: 'text',
  key_id: 'text',
  shared: 'boolean',
  model: 'text',
  input: 'jsonb',
  seed: 'bigint',
  webhook_url: 'text',
  ready: 'boolean',
  size: 'text',
  duration: 'integer',
  needs_lora: 'boolean',
  models: 'text[]',
  precisions: 'text[]',
  image: 'jsonb',
  loras: 'jsonb',
} as const;
const names = sql.raw(Object.keys(columns).join(', '));
const types = sql.raw(
  Object.entries(columns)
    .map(([name, type]) => `${name} ${type}`)
    .join(', '),
);

async function insertRows(
  db: Database,
  config: JobsDependencies['config'],
  batch: readonly NewJob[],
): Promise<readonly JobRow[]> {
  if (batch.length === 0) return [];
  const rows = batch.map((job) => newRow(job, config));
  // One parameter for all: many cost more than their values.
  const json = JSON.stringify(
    rows.map((row) => ({
      ...row,
      key_id: row.keyId,
      webhook_url: row.webhookUrl,
      needs_lora: row.needsLora,
    })),
  );
  const inserted = db.$with('inserted', { createdAt: jobs.createdAt }).as(
    sql`insert into ${jobs} (${names}) select ${names} from jsonb_to_recordset(${json}::jsonb)
      as r(${types}) returning ${sql.identifier('created_at')}`,
  );
  // One commit has one time.
  const [first] = await db
    .with(inserted)
    .select({ createdAt: sql`min(created_at)`.mapWith(jobs.createdAt) })
    .from(inserted);
  if (!first) throw new Error('No job was inserted.');
  return rows.map((row) => ({ ...row, createdAt: first.createdAt }));
}

/** A job as it is after its insertion, but for its time. */
function newRow(job: NewJob, config: JobsDependencies['config']): Omit<JobRow, 'createdAt'> {
  const { caller } = job;
  const input = storableJson(job.input);
  return {
    id: job.id,
    owner: storable(caller.owner),
    keyId: storable(caller.keyId),
    shared: caller.shared,
    model: storable(job.model),
    input,
    seed: resolveSeed(input.seed),
    webhookUrl: job.webhookUrl === null ? null : storable(job.webhookUrl),
    status: 'created',
    ready: job.ready,
    priority: 0,
    size: input.size,
    duration: input.duration,
    needsLora: job.loras.length > 0,
    models: config.KINORA_SERVING_MODELS,
    precisions: config.KINORA_SERVING_PRECISIONS,
    image: job.image,
    loras: storableJson(job.loras),
    intakeUntil: null,
    intakeAttempts: 0,
    attempt: 0,
    releases: 0,
    failedAt: null,
    failedWorker: null,
    ...withoutLease,
    finishedAt: null,
    error: '',
    code: null,
    inferenceMs: 0,
    outputKey: null,
    outputBytes: null,
    outputSha256: null,
    outputNonce: null,
    outputExpiresAt: null,
    ranModel: null,
    ranPrecision: null,
    safety: 'unverified',
  };
}

import { sql } from 'drizzle-orm';
import { resolveSeed } from '../../lib/contract/request';
import { ApiError } from '../../lib/contract/v3';
import type { NewJob } from '../relay';
import { storageDown } from '../store';
import { type JobRow, jobs } from '../store/schema';
import type { Database } from '../store/store';
import { type JobsDependencies, withoutLease } from './context';
import { storable, storableJson } from './text';

/** How long a caller with too many jobs is asked to wait: a video takes minutes. */
const tooManyRetrySeconds = 10;
/** Submissions that share one statement and one commit. */
const batchSize = 64;
/** How long the count of a key's jobs is believed, in milliseconds; only other nodes can make it wrong. */
const countedMs = 5000;
/** Keys whose counts are remembered. */
const maxRooms = 10_000;

interface Waiting {
  readonly job: NewJob;
  resolve(row: JobRow): void;
  reject(error: unknown): void;
}

/**
 * Inserts jobs. Those that arrive while a statement is under way go together in the next one: on the
 * embedded database a statement costs more than its rows, on PostgreSQL a commit does. Nobody waits
 * for a batch to fill, and everybody for its commit.
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
  let waiting: Waiting[] = [];
  let running = false;

  async function run(): Promise<void> {
    running = true;
    while (waiting.length > 0) {
      const batch = waiting.slice(0, batchSize);
      waiting = waiting.slice(batchSize);
      await insertBatch(batch);
    }
    running = false;
  }

  async function insertBatch(batch: readonly Waiting[]): Promise<void> {
    let admitted: readonly Waiting[];
    try {
      admitted = await admit(batch);
    } catch (error) {
      for (const { reject } of batch) reject(error);
      return;
    }
    await insertAdmitted(admitted);
  }

  async function insertAdmitted(admitted: readonly Waiting[]): Promise<void> {
    try {
      const rows = await insertRows(db, config, admitted);
      for (const [index, row] of rows.entries()) admitted[index]?.resolve(row);
    } catch (error) {
      // One that the database refuses must not take the others with it.
      if (admitted.length > 1 && !storageDown(error)) {
        for (const one of admitted) await insertAdmitted([one]);
      } else for (const { reject } of admitted) reject(error);
    }
  }

  /** Rejects those whose key has enough. */
  async function admit(batch: readonly Waiting[]): Promise<readonly Waiting[]> {
    if (limit === 0) return batch;
    await count(batch);
    return batch.filter(({ job, reject }) => {
      const room = rooms.get(job.caller.keyId);
      if (room && room.left > 0) {
        room.left -= 1;
        return true;
      }
      const headers = { 'Retry-After': String(tooManyRetrySeconds) };
      reject(new ApiError('TOO_MANY_JOBS', undefined, { headers }));
      return false;
    });
  }

  /**
   * Counts the jobs of keys whose last count is old or used up. A count reads every unfinished job of
   * the key, so it is not made for each: jobs that end meanwhile only make more room than is known.
   */
  async function count(batch: readonly Waiting[]): Promise<void> {
    const wanted = new Map<string, number>();
    for (const { job } of batch) {
      wanted.set(job.caller.keyId, (wanted.get(job.caller.keyId) ?? 0) + 1);
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

  return (job) =>
    new Promise((resolve, reject) => {
      waiting.push({ job, resolve, reject });
      if (!running) void run();
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
  batch: readonly Waiting[],
): Promise<readonly JobRow[]> {
  if (batch.length === 0) return [];
  const rows = batch.map(({ job }) => newRow(job, config));
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

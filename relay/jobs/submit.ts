import { and, eq, isNotNull, sql } from 'drizzle-orm';
import { resolveSeed } from '../../lib/contract';
import { ApiError, type PredictionInput, type Submission } from '../../lib/contract/v3';
import type { Caller } from '../access/caller';
import { type Config, modelsFor } from '../config';
import { type JobImage, type JobLora, type JobRow, jobs, type NewJobRow } from '../store/schema';
import type { Database } from '../store/store';
import { announce, type JobsDependencies } from './context';

/** A job to be inserted. */
export interface NewJob {
  readonly id: string;
  readonly caller: Caller;
  readonly model: string;
  /** Manifest ids that may serve it; those of its family where absent. */
  readonly models?: readonly string[];
  readonly webhookUrl: string | null;
  readonly input: PredictionInput;
  /** `auto` until the image is there, where that decides it; else that of `input`. */
  readonly size?: Submission['size'];
  /** Null while it is still to be fetched. */
  readonly image: JobImage | null;
  /** Absent without one. */
  readonly lastImage?: JobImage | null;
  readonly loras: readonly JobLora[];
  readonly ready: boolean;
  readonly idempotency: Idempotency | null;
}

/** The `Idempotency-Key` of a submission, and the hash by which the submission is compared. */
interface Idempotency {
  readonly key: string;
  /** SHA-256, hex. */
  readonly hash: string;
}

/** How long a caller with too many jobs is asked to wait: a video takes minutes. */
const tooManyRetrySeconds = 10;

/** Unfinished jobs of a key are counted no further where it may have any number. */
const countedAtMost = 1000;

/** How long a submission is found by its `Idempotency-Key`. */
const idempotencyAge = sql`interval '24 hours'`;

/** Submissions of callers. */
export function createSubmissions({ store, config }: JobsDependencies) {
  const { db } = store;
  const limit = config.KINORA_JOBS_PER_KEY;

  async function inserted(job: NewJob): Promise<JobRow> {
    if (limit === 0) return await insert(db, job);
    const { keyId } = job.caller;
    return await db.transaction(async (tx) => {
      await tx.execute(sql`select pg_advisory_xact_lock(hashtextextended(${keyId}, 0))`);
      if ((await countUnfinished(tx, keyId, limit)) < limit) return await insert(tx, job);
      const headers = { 'Retry-After': String(tooManyRetrySeconds) };
      throw new ApiError('TOO_MANY_JOBS', undefined, { headers });
    });
  }

  /** @returns the new row, or that of an earlier submission under the same `Idempotency-Key` */
  async function insert(tx: Database, job: NewJob): Promise<JobRow> {
    const { idempotency, caller } = job;
    if (idempotency !== null) {
      const isOld = sql`${jobs.createdAt} <= now() - ${idempotencyAge}`;
      await tx
        .update(jobs)
        .set({ idempotencyKey: null, idempotencyHash: null })
        .where(and(submittedAs(caller.keyId, idempotency.key), isOld));
    }
    const [row] = await tx
      .insert(jobs)
      .values(newRow(job, config))
      .onConflictDoNothing({
        target: [jobs.keyId, jobs.idempotencyKey],
        where: sql`idempotency_key is not null`,
      })
      .returning();
    const earlier = row ?? (idempotency && (await submittedBefore(caller.keyId, idempotency, tx)));
    if (!earlier) throw new Error('The job was not inserted.');
    return earlier;
  }

  /**
   * The job that a key submitted under an `Idempotency-Key` within a day. A deleted job frees its key.
   *
   * @throws ApiError `IDEMPOTENCY_MISMATCH` where that was another request
   */
  async function submittedBefore(
    keyId: string,
    { key, hash }: Idempotency,
    tx: Database = db,
  ): Promise<JobRow | null> {
    const recent = sql`${jobs.createdAt} > now() - ${idempotencyAge}`;
    const [job] = await tx
      .select()
      .from(jobs)
      .where(and(submittedAs(keyId, key), recent));
    if (job && job.idempotencyHash !== hash) throw new ApiError('IDEMPOTENCY_MISMATCH');
    return job ?? null;
  }

  return {
    /**
     * Inserts a job. The limit of unfinished jobs of a key holds exactly: the submissions of a key, of all nodes,
     * come one after the other.
     *
     * @returns the new job; an earlier one (with another id) that has the same `Idempotency-Key`
     * @throws ApiError `TOO_MANY_JOBS`, `IDEMPOTENCY_MISMATCH`
     */
    async submit(job: NewJob): Promise<JobRow> {
      const row = await inserted(job);
      if (row.id === job.id) announce(store, row);
      return row;
    },
    submittedBefore,
    unfinishedOf: (keyId: string): Promise<number> =>
      countUnfinished(db, keyId, limit || countedAtMost),
  };
}

/** Unfinished jobs of a key, counted no further than `limit`, whatever the length of the queue. */
async function countUnfinished(db: Database, keyId: string, limit: number): Promise<number> {
  const unfinished = db
    .select({ id: jobs.id })
    .from(jobs)
    .where(and(eq(jobs.keyId, keyId), sql`${jobs.status} in ('created', 'processing')`))
    .limit(limit)
    .as('unfinished');
  return await db.$count(unfinished);
}

function submittedAs(keyId: string, idempotencyKey: string) {
  return and(
    eq(jobs.keyId, keyId),
    eq(jobs.idempotencyKey, idempotencyKey),
    // Part of the unique index's condition: without it the planner cannot use the index.
    isNotNull(jobs.idempotencyKey),
  );
}

function newRow(job: NewJob, config: Config): NewJobRow {
  const { caller, idempotency, lastImage = null, ...columns } = job;
  const { input, loras, model, models = modelsFor(config, model), size = input.size } = columns;
  const { owner, keyId, shared } = caller;
  return {
    ...columns,
    owner,
    keyId,
    shared,
    seed: resolveSeed(input.seed),
    idempotencyKey: idempotency?.key ?? null,
    idempotencyHash: idempotency?.hash ?? null,
    duration: input.duration,
    needsLora: loras.length > 0,
    models: [...models],
    size,
    precisions: config.KINORA_SERVING_PRECISIONS,
    lastImage,
  };
}

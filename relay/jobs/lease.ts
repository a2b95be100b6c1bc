import { randomBytes } from 'node:crypto';
import { and, eq, sql } from 'drizzle-orm';
import {
  ApiError,
  type Completion,
  type Failure,
  type Heartbeat,
  type LeaseAnswer,
  type WorkerDeclaration,
} from '../../lib/contract/v3';
import type { Caller } from '../access/caller';
import { deliveries, type JobImage, type JobRow, jobs, previews } from '../store/schema';
import { type Database, equals } from '../store/store';
import type { createClaims } from './claim';
import { type Apply, announce, inSeconds, type JobsDependencies, now } from './context';
import { failureCode, type JobEvent } from './status';

/** A worker's report of a finished job, and the place of its video. */
type JobResult = Omit<Completion, 'lease_token'> & { readonly outputKey: string };

/** A job that a worker has: its lease, and the files that the attempt needs. */
export type ClaimedJob = JobRow & {
  readonly leaseToken: string;
  readonly leaseUntil: Date;
  readonly deadline: Date;
  readonly image: JobImage;
};

/** Whether an attempt of this job runs. */
export function isClaimed(job: JobRow): job is ClaimedJob {
  const { status, leaseToken, leaseUntil, deadline, image } = job;
  return status === 'processing' && ![leaseToken, leaseUntil, deadline, image].includes(null);
}

/** The rows under a lease, which may have ended. @param by key id of the calling worker; any where absent */
function byLease(id: string, token: string, by?: string) {
  return and(eq(jobs.id, id), eq(jobs.leaseToken, token), equals(jobs.workerToken, by));
}

/** The rows under a lease that has not ended. */
function byActiveLease(...lease: Parameters<typeof byLease>) {
  return and(byLease(...lease), sql`${jobs.status} = 'processing'`);
}

/** Shortest time between two webhooks of a job's progress, in seconds. */
const progressSeconds = 10;

/**
 * The actions of workers on jobs. In each, `token` is that of the lease, and `by` the key id of the caller's worker token,
 * where there is a caller: the lease is that token's alone.
 */
export function createLeases(
  { store, config, outboxRow, log, metrics }: JobsDependencies,
  apply: Apply,
  takeNext: ReturnType<typeof createClaims>['takeNext'],
) {
  const { db } = store;

  /**
   * Writes the webhook of an event of a running job. `start` is written once, whatever the number of attempts;
   * `progress` replaces the job's earlier one, which was delivered or is out of date. A failure is logged: the job
   * itself goes on.
   */
  async function report(job: JobRow | undefined, event: 'start' | 'progress'): Promise<void> {
    const row = job && outboxRow(job, event);
    if (!row) return;
    // Another message has another id: receivers drop an id that they know.
    const { id, body } = row;
    const counts = { attempts: 0, attemptsBefore: 0, finishedAt: null };
    const isOld = sql`${deliveries.event} = 'progress'
      and ${deliveries.createdAt} <= now() - make_interval(secs => ${progressSeconds})`;
    try {
      const written = await db
        .insert(deliveries)
        .values(row)
        .onConflictDoUpdate({
          target: [deliveries.jobId, deliveries.event],
          set: { id, body, status: 'due', ...counts, nextAt: now, createdAt: now },
          setWhere: isOld,
        })
        .returning({ id: deliveries.id });
      if (written.length > 0) store.notify('deliveryDue', '');
    } catch (err) {
      log.warn({ err, job: job.id, event }, 'the webhook of an event was not written');
    }
  }

  /** Ends a lease without a result. @throws ApiError `LEASE_LOST` */
  async function end(where: ReturnType<typeof byLease>, event: JobEvent): Promise<JobRow> {
    const { job } = await apply(where, event);
    if (!job) throw new ApiError('LEASE_LOST');
    return job;
  }

  return {
    /** The first waiting job that fits the worker, under a new lease; null where there is none. */
    async claimNext(caller: Caller, worker: WorkerDeclaration): Promise<ClaimedJob | null> {
      const job = await takeNext(caller, worker);
      if (!job) return null;
      if (!isClaimed(job)) throw new Error('A waiting job has no image.');
      announce(store, job);
      if (job.webhookEvents?.includes('start')) await report(job, 'start');
      return job;
    },
    /** The job under a lease. One that has run out still counts until a sweep has seen it. @throws ApiError `LEASE_LOST` */
    async lease(id: string, token: string, by?: string): Promise<JobRow> {
      const [job] = await db
        .select()
        .from(jobs)
        .where(byActiveLease(id, token, by));
      if (!job) throw new ApiError('LEASE_LOST');
      return job;
    },
    /** Extends a lease and keeps the progress. @throws ApiError `LEASE_LOST` */
    async heartbeat(
      id: string,
      token: string,
      heartbeat: Omit<Heartbeat, 'lease_token'>,
      by?: string,
    ): Promise<LeaseAnswer> {
      const { seconds_remaining: secondsRemaining, preview: image, ...position } = heartbeat;
      const extend = async (tx: Database) => {
        const [moved] = await tx
          .update(jobs)
          .set({
            leaseUntil: inSeconds(config.KINORA_LEASE_SECONDS),
            progress: { ...position, secondsRemaining },
          })
          .where(byActiveLease(id, token, by))
          .returning({
            leaseUntil: jobs.leaseUntil,
            deadline: jobs.deadline,
            webhookEvents: jobs.webhookEvents,
          });
        if (!moved || image === undefined) return moved;
        const { step } = position;
        await tx
          .insert(previews)
          .values({ jobId: id, step, image })
          .onConflictDoUpdate({ target: previews.jobId, set: { step, image } });
        return moved;
      };
      const moved = await (image === undefined ? extend(db) : db.transaction(extend));
      if (!moved?.leaseUntil || !moved.deadline) throw new ApiError('LEASE_LOST');
      store.notify('jobChanged', `${id}:step`);
      if (image !== undefined) store.notify('jobChanged', `${id}:preview`);
      if (moved.webhookEvents?.includes('progress')) {
        const [job] = await db.select().from(jobs).where(eq(jobs.id, id));
        await report(job, 'progress');
      }
      return {
        lease_until: moved.leaseUntil.toISOString(),
        deadline: moved.deadline.toISOString(),
      };
    },
    /**
     * Completes a job, with the outbox row, in one transaction. The same result again under the same token is no error:
     * the first answer may have been lost on its way.
     *
     * @throws ApiError `LEASE_LOST`
     */
    async complete(id: string, token: string, result: JobResult, by?: string): Promise<JobRow> {
      const { before, job } = await apply(
        byLease(id, token, by),
        { type: 'completed' },
        {
          inferenceMs: result.inference_ms,
          samplingMs: result.sampling_ms ?? null,
          decodeMs: result.decode_ms ?? null,
          applied: result.applied ?? null,
          outputKey: result.outputKey,
          outputBytes: result.bytes,
          outputSha256: result.sha256,
          outputNonce: randomBytes(12).toString('hex'),
          outputExpiresAt: inSeconds(config.KINORA_RETENTION_DAYS * 86_400),
          ranModel: result.model,
          ranPrecision: result.precision,
          safety: result.safety.status,
          safetyRecord: result.safety,
          promptOptimization: result.prompt_optimization,
        },
      );
      if (before?.status === 'completed' && before.outputSha256 === result.sha256) return before;
      if (!job) throw new ApiError('LEASE_LOST');
      metrics?.attempt('completed');
      metrics?.inference(result.inference_ms / 1000);
      return job;
    },
    /** Requeues where another attempt may succeed and is left, else ends it. @throws ApiError `LEASE_LOST` */
    async fail(
      id: string,
      token: string,
      { message, code, retryable }: Omit<Failure, 'lease_token'>,
      by?: string,
    ): Promise<JobRow> {
      const event = { type: 'failed', message, retryable, code: failureCode(code) } as const;
      const job = await end(byActiveLease(id, token, by), event);
      metrics?.attempt(job.status === 'failed' ? 'failed' : 'requeued');
      log.info({ job: id, code, status: job.status }, 'an attempt failed');
      return job;
    },
    /** Gives a lease back; the attempt does not count. @throws ApiError `LEASE_LOST` */
    async release(id: string, token: string, by?: string): Promise<JobRow> {
      const job = await end(byActiveLease(id, token, by), { type: 'released' });
      metrics?.attempt('released');
      return job;
    },
  };
}

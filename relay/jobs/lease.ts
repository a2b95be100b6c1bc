import { randomBytes } from 'node:crypto';
import { and, eq, sql } from 'drizzle-orm';
import { ApiError, type Completion, type Heartbeat, type LeaseAnswer } from '../../lib/contract/v3';
import { type JobImage, type JobRow, jobs, previews } from '../store/schema';
import type { Database } from '../store/store';
import { inSeconds, type JobsDependencies, now, workerName, writeStep } from './context';
import { type JobEvent, nextStep } from './status';

/** What a worker reports of a finished job, and where its video is kept. */
export type JobResult = Omit<Completion, 'lease_token'> & { readonly outputKey: string };

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

/** A lease as a call names it. */
export interface NamedLease {
  readonly id: string;
  readonly token: string;
  /** Key id of the worker token that calls; any where absent. */
  readonly by?: string | undefined;
}

/** The rows under a lease, which may have ended. */
function byLease({ id, token, by }: NamedLease) {
  return and(
    eq(jobs.id, id),
    eq(jobs.leaseToken, token),
    by === undefined ? undefined : eq(jobs.workerToken, by),
  );
}

/** The rows under a lease that has not ended. */
function byActiveLease(lease: NamedLease) {
  return and(byLease(lease), sql`${jobs.status} = 'processing'`);
}

/**
 * The job under a lease. One that has run out still counts until a sweep has seen it.
 *
 * @throws ApiError `LEASE_LOST`
 */
export async function leasedJob(db: Database, lease: NamedLease): Promise<JobRow> {
  const [job] = await db.select().from(jobs).where(byActiveLease(lease));
  if (!job) throw new ApiError('LEASE_LOST');
  return job;
}

/** Extends a lease and keeps the progress. @throws ApiError `LEASE_LOST` */
export async function renewLease(
  db: Database,
  { config }: Pick<JobsDependencies, 'config'>,
  lease: NamedLease,
  heartbeat: Omit<Heartbeat, 'lease_token'>,
): Promise<{ answer: LeaseAnswer; webhookEvents: JobRow['webhookEvents'] }> {
  const { phase, step, steps, clip, clips, seconds_remaining: secondsRemaining } = heartbeat;
  const move = async (tx: Database) => {
    const [moved] = await tx
      .update(jobs)
      .set({
        leaseUntil: inSeconds(config.KINORA_LEASE_SECONDS),
        progress: { phase, step, steps, clip, clips, secondsRemaining },
      })
      .where(byActiveLease(lease))
      .returning({
        leaseUntil: jobs.leaseUntil,
        deadline: jobs.deadline,
        webhookEvents: jobs.webhookEvents,
      });
    if (!moved?.leaseUntil || !moved.deadline) throw new ApiError('LEASE_LOST');
    const answer = {
      lease_until: moved.leaseUntil.toISOString(),
      deadline: moved.deadline.toISOString(),
    };
    return { answer, webhookEvents: moved.webhookEvents };
  };
  const { preview: image } = heartbeat;
  if (image === undefined) return move(db);
  return db.transaction(async (tx) => {
    const moved = await move(tx);
    await tx
      .insert(previews)
      .values({ jobId: lease.id, step, image })
      .onConflictDoUpdate({ target: previews.jobId, set: { step, image } });
    return moved;
  });
}

/**
 * Ends a lease: fail, release.
 *
 * @throws ApiError `LEASE_LOST`
 */
export async function endLease(
  db: Database,
  { config, outboxRow }: Pick<JobsDependencies, 'config' | 'outboxRow'>,
  lease: NamedLease,
  event: JobEvent,
): Promise<{ job: JobRow; delivery: boolean }> {
  return db.transaction(async (tx) => {
    const [job] = await tx.select().from(jobs).where(byActiveLease(lease)).for('update');
    const step = job && nextStep(job, event, config.KINORA_MAX_ATTEMPTS);
    if (!step) throw new ApiError('LEASE_LOST');
    if (event.type !== 'failed' || step.status !== 'created') {
      return writeStep(tx, job, step, outboxRow);
    }
    const failedWorker = workerName(job.workerToken, job.workerId);
    return writeStep(tx, job, step, outboxRow, { failedAt: now, failedWorker });
  });
}

/**
 * Completes a job. The same result again under the same token is no error: the first answer may have
 * been lost on its way.
 *
 * @throws ApiError `LEASE_LOST`
 */
export async function completeLease(
  db: Database,
  { config, outboxRow }: Pick<JobsDependencies, 'config' | 'outboxRow'>,
  lease: NamedLease,
  result: JobResult,
): Promise<{ job: JobRow; delivery: boolean; repeated: boolean }> {
  return db.transaction(async (tx) => {
    const [job] = await tx.select().from(jobs).where(byLease(lease)).for('update');
    if (job?.status === 'completed' && job.outputSha256 === result.sha256) {
      return { job, delivery: false, repeated: true };
    }
    const step = job && nextStep(job, { type: 'completed' }, config.KINORA_MAX_ATTEMPTS);
    if (!step) throw new ApiError('LEASE_LOST');
    const written = await writeStep(tx, job, step, outboxRow, {
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
    });
    return { ...written, repeated: false };
  });
}

import { and, eq, type SQL } from 'drizzle-orm';
import type {
  ClaimAnswer,
  Failure,
  Heartbeat,
  LeaseAnswer,
  WorkerDeclaration,
} from '../../lib/contract/v3';
import type { Caller } from '../access/caller';
import { withStorageErrors } from '../store';
import { type JobImages, type JobLora, type JobRow, jobs } from '../store/schema';
import { claimNext, skippedFor } from './claim';
import { announce, type JobsDependencies, writeEvent, writeStep } from './context';
import {
  finishIntake,
  retryPause,
  returnIntake,
  storeImages,
  type TakenIntake,
  takenBy,
  takeWaiting,
} from './intake';
import {
  type ClaimedJob,
  completeLease,
  endLease,
  type JobResult,
  leasedJob,
  type NamedLease,
  renewLease,
} from './lease';
import {
  createPositions,
  type JobsPage,
  type JobsQuery,
  listJobs,
  previewOf,
  type QueueDepth,
  queueDepth,
  removeJobs,
} from './queries';
import { createJobReader } from './reader';
import { failureCode, type JobEvent, nextStep } from './status';
import {
  countUnfinished,
  createSubmitter,
  type Idempotency,
  type NewJob,
  submittedBefore,
} from './submit';
import { sweepJobs } from './sweep';

/** Unfinished jobs of a key are counted no further where it may have any number. */
const countedAtMost = 1000;

export type { JobsDependencies, OutboxRow } from './context';
export { createHeldClaims, type HeldClaims } from './held-claims';
export { type ClaimedJob, isClaimed } from './lease';
export { canTake, takesFor } from './matching';
export { checkReport } from './report';
export { isTerminal } from './status';
export { createSweeper } from './sweep';
export { createWatches, type Watches } from './watches';
export { createWorkers, type Workers } from './workers';

/**
 * The jobs of an installation: leases per attempt with a fencing token (README.md). Every method is one
 * transaction and throws ApiError `STORAGE_DOWN` when the database is not there.
 */
export function createJobs(dependencies: JobsDependencies) {
  const { store, config, outboxRow, log, metrics } = dependencies;
  const { db } = store;
  const submit = createSubmitter(dependencies);
  const position = createPositions(db);

  const changed = (job: JobRow, delivery = false) => announce(store, job, delivery);

  /** Applies an event that comes with no lease token: a cancel, files that cannot be fetched. */
  async function apply(
    which: SQL | undefined,
    event: JobEvent,
  ): Promise<{ job: JobRow; before: JobRow } | null> {
    const result = await db.transaction(async (tx) => {
      const [before] = await tx.select().from(jobs).where(which).for('update');
      if (!before) return null;
      const step = nextStep(before, event, config.KINORA_MAX_ATTEMPTS);
      if (!step) return { job: before, before, delivery: false };
      return { ...(await writeStep(tx, before, step, outboxRow)), before };
    });
    if (result && result.job !== result.before) changed(result.job, result.delivery);
    return result;
  }

  /** Writes the webhook of an event of a running job. A failure is logged: the job itself goes on. */
  async function report(job: JobRow | null, event: 'start' | 'progress'): Promise<void> {
    try {
      const row = job && outboxRow(job, event);
      if (row && (await writeEvent(db, row))) void store.notify('deliveryDue', '');
    } catch (err) {
      log.warn({ err, job: job?.id, event }, 'the webhook of an event was not written');
    }
  }

  async function end(lease: NamedLease, event: JobEvent): Promise<JobRow> {
    const { job, delivery } = await endLease(db, dependencies, lease, event);
    changed(job, delivery);
    return job;
  }

  const get = createJobReader(db);
  return withStorageErrors({
    /**
     * @returns the new job; an earlier one (with another id) that has the same `Idempotency-Key`
     * @throws ApiError `TOO_MANY_JOBS`, `IDEMPOTENCY_MISMATCH`
     */
    async submit(job: NewJob): Promise<JobRow> {
      const row = await submit(job);
      if (row.id === job.id) changed(row);
      return row;
    },
    /**
     * The job that this key submitted under an `Idempotency-Key` within a day; null where there is none.
     *
     * @throws ApiError `IDEMPOTENCY_MISMATCH` where that was another request
     */
    submittedBefore: (keyId: string, idempotency: Idempotency): Promise<JobRow | null> =>
      submittedBefore(db, keyId, idempotency),
    get,
    list: (owner: string, query: JobsQuery): Promise<JobsPage> => listJobs(db, owner, query),
    /** Deletes finished jobs of an owner. @returns the deleted rows, for their files */
    remove: (ids: readonly string[], owner: string): Promise<JobRow[]> =>
      removeJobs(db, ids, owner),
    /** Jobs that come before this one among those its workers choose from; 0 is next. */
    position: (job: Pick<JobRow, 'id' | 'owner' | 'status'>): Promise<number> => position(job),
    unfinishedOf: (keyId: string): Promise<number> =>
      countUnfinished(db, keyId, config.KINORA_JOBS_PER_KEY || countedAtMost),

    /** The first waiting job that fits the worker, under a new lease; null where there is none. */
    async claimNext(caller: Caller, worker: WorkerDeclaration): Promise<ClaimedJob | null> {
      const job = await claimNext(db, dependencies, caller, worker);
      if (!job) return null;
      changed(job);
      if (job.webhookEvents?.includes('start')) await report(job, 'start');
      return job;
    },
    /** Why a worker is given nothing: the first waiting jobs, counted by the first reason of each. */
    skippedFor: (caller: Caller, worker: WorkerDeclaration): Promise<ClaimAnswer['skipped']> =>
      skippedFor(db, caller, worker),
    /**
     * @param by key id of the caller's worker token, where there is a caller: the lease is that token's
     * alone (as in all with a lease token)
     * @throws ApiError `LEASE_LOST` (as do all with a lease token)
     */
    async heartbeat(
      id: string,
      token: string,
      heartbeat: Omit<Heartbeat, 'lease_token'>,
      by?: string,
    ): Promise<LeaseAnswer> {
      const lease = { id, token, by };
      const { answer, webhookEvents } = await renewLease(db, dependencies, lease, heartbeat);
      void store.notify('jobChanged', `${id}:step`);
      if (heartbeat.preview !== undefined) void store.notify('jobChanged', `${id}:preview`);
      if (webhookEvents?.includes('progress')) await report(await get(id), 'progress');
      return answer;
    },
    lease: (id: string, token: string, by?: string): Promise<JobRow> =>
      leasedJob(db, { id, token, by }),
    /** With the outbox row, in one transaction. The same completion again answers the same. */
    async complete(id: string, token: string, result: JobResult, by?: string): Promise<JobRow> {
      const lease = { id, token, by };
      const { job, delivery, repeated } = await completeLease(db, dependencies, lease, result);
      if (repeated) return job;
      changed(job, delivery);
      metrics?.attempt('completed');
      metrics?.inference(result.inference_ms / 1000);
      return job;
    },
    /** Requeues where another attempt may succeed and is left, else ends it. */
    async fail(
      id: string,
      token: string,
      { message, code, retryable }: Omit<Failure, 'lease_token'>,
      by?: string,
    ): Promise<JobRow> {
      const job = await end(
        { id, token, by },
        { type: 'failed', message, retryable, code: failureCode(code) },
      );
      metrics?.attempt(job.status === 'failed' ? 'failed' : 'requeued');
      log.info({ job: id, code, status: job.status }, 'an attempt failed');
      return job;
    },
    async release(id: string, token: string, by?: string): Promise<JobRow> {
      const job = await end({ id, token, by }, { type: 'released' });
      metrics?.attempt('released');
      return job;
    },
    /** Ends a job at once as failed, "cancelled by user"; a finished job stays as it is. */
    async cancel(id: string, owner: string): Promise<JobRow | null> {
      const own = and(eq(jobs.id, id), eq(jobs.owner, owner));
      // The answer to its next heartbeat tells the worker.
      return (await apply(own, { type: 'cancelled' }))?.job ?? null;
    },

    /** Takes waiting jobs whose files are to be fetched, for this node and `seconds`. */
    takeIntake: (limit: number, seconds: number): Promise<JobRow[]> =>
      takeWaiting(db, limit, seconds),
    /** Stores where an image of a job is. @returns null where the job no longer waits for it */
    imageStored: (id: string, images: JobImages): Promise<JobRow | null> =>
      storeImages(db, id, images),
    /** The first node that has all files calls it. @returns null where the job no longer waits for them */
    async intakeDone(id: string, loras: readonly JobLora[]): Promise<JobRow | null> {
      const job = await finishIntake(db, id, loras);
      if (job) changed(job);
      return job;
    },
    /** @returns null, with nothing changed, where another node has taken the job over */
    async intakeFailed(taken: TakenIntake, message: string): Promise<JobRow | null> {
      const event = { type: 'intake-failed', message } as const;
      return (await apply(takenBy(taken), event))?.job ?? null;
    },
    /**
     * Lets any node fetch the image again after a pause; ends the job after the last one, about ten minutes later.
     *
     * @param error one sentence
     * @returns null, with nothing changed, where another node has taken the job over
     */
    async intakePostponed(
      taken: TakenIntake & Pick<JobRow, 'intakeFailures'>,
      error: string,
    ): Promise<JobRow | null> {
      const pause = retryPause(taken.intakeFailures);
      if (pause === null) {
        const message = `${error} It was tried ${taken.intakeFailures + 1} times.`;
        return (await apply(takenBy(taken), { type: 'intake-failed', message }))?.job ?? null;
      }
      const job = await returnIntake(db, taken, pause, error);
      if (job) void store.notify('jobChanged', `${job.id}:status`);
      return job;
    },
    /**
     * Gives a taken job back after `seconds`, its attempt too: the failure was not caused by its files.
     * Changes nothing where another node has taken it over.
     */
    async intakeReturned(taken: TakenIntake, seconds: number): Promise<void> {
      await returnIntake(db, taken, seconds);
    },

    /**
     * Requeues or fails what has lost its lease or passed its deadline. Any node, any number at once.
     *
     * @param which lost leases alone, or all but them; everything where absent
     */
    async sweep(which?: 'leases' | 'others'): Promise<{ requeued: number; failed: number }> {
      const swept = await sweepJobs(dependencies, which);
      for (const { job, delivery, event } of swept) {
        changed(job, delivery);
        if (event.type === 'intake-failed') continue;
        metrics?.attempt('expired');
        log.info({ job: job.id, status: job.status, why: event.type }, 'a lease was ended');
      }
      const requeued = swept.filter(({ job }) => job.status === 'created').length;
      return { requeued, failed: swept.length - requeued };
    },
    depth: (): Promise<QueueDepth> => queueDepth(db),
    preview: (id: string): Promise<{ step: number; image: string } | null> => previewOf(db, id),
  });
}

/** The one place that changes a job's row. */
export type Jobs = ReturnType<typeof createJobs>;

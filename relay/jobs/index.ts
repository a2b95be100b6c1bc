import { and, eq, type SQL } from 'drizzle-orm';
import type { ClaimAnswer, WorkerDeclaration } from '../../lib/contract/v3';
import type { Caller } from '../access/caller';
import { withStorageErrors } from '../store';
import { type JobImages, type JobLora, type JobRow, jobs } from '../store/schema';
import { skippedFor } from './claim';
import { announce, type JobsDependencies, writeStep } from './context';
import {
  finishIntake,
  retryPause,
  returnIntake,
  storeImages,
  type TakenIntake,
  takenBy,
  takeWaiting,
} from './intake';
import { createLeases } from './lease';
import { createQueries } from './queries';
import { createJobReader } from './reader';
import { type JobEvent, nextStep } from './status';
import {
  countUnfinished,
  type Idempotency,
  type NewJob,
  submitJob,
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

  const get = createJobReader(db);
  return withStorageErrors({
    /**
     * @returns the new job; an earlier one (with another id) that has the same `Idempotency-Key`
     * @throws ApiError `TOO_MANY_JOBS`, `IDEMPOTENCY_MISMATCH`
     */
    async submit(job: NewJob): Promise<JobRow> {
      const row = await submitJob(dependencies, job);
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
    ...createQueries(db),
    unfinishedOf: (keyId: string): Promise<number> =>
      countUnfinished(db, keyId, config.KINORA_JOBS_PER_KEY || countedAtMost),

    ...createLeases(dependencies),
    /** Why a worker is given nothing: the first waiting jobs, counted by the first reason of each. */
    skippedFor: (caller: Caller, worker: WorkerDeclaration): Promise<ClaimAnswer['skipped']> =>
      skippedFor(db, caller, worker),
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
  });
}

/** The one place that changes a job's row. */
export type Jobs = ReturnType<typeof createJobs>;

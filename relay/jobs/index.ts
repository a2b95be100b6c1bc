import { and, eq, type SQL } from 'drizzle-orm';
import type { WorkerDeclaration } from '../../lib/contract/v3';
import type { Caller } from '../relay';
import { storageErrors } from '../store';
import { type JobRow, jobs } from '../store/schema';
import { claimNext, skippedFor } from './claim';
import { announce, type JobsDependencies, writeStep } from './context';
import { finishIntake, returnIntake, takenBy, takeWaiting } from './intake';
import { completeLease, endLease, leasedJob, type NamedLease, renewLease } from './lease';
import { createPositions } from './positions';
import { getJob, listJobs, previewOf, queueDepth, removeJobs } from './queries';
import { failureCode, type JobEvent, nextStep } from './status';
import { countUnfinished, createSubmitter, submittedBefore } from './submit';
import { sweepJobs } from './sweep';
import { storable } from './text';
import type { Jobs } from './types';

/** Unfinished jobs of a key are counted no further where it may have any number. */
const countedAtMost = 1000;

export type { JobsDependencies } from './context';
export { type ClaimRequest, createHeldClaims, type HeldClaims } from './held-claims';
export { freeReleases } from './status';
export { createSweeper } from './sweeper';
export type { Idempotency, Jobs, ListedJob, NewJob, OutboxRow, TakenIntake } from './types';
export { createWorkers, type Workers } from './workers';

/**
 * The jobs of an installation: leases per attempt with a fencing token (README.md). Every method is one
 * transaction and throws ApiError `STORAGE_DOWN` when the database is not there.
 */
export function createJobs(dependencies: JobsDependencies): Jobs {
  const { store, config, outboxRow, log, metrics } = dependencies;
  const { db } = store;
  const submit = createSubmitter(dependencies);
  const positions = createPositions(db);

  /** Tells others, and our own memory of the queue. */
  function changed(job: JobRow, delivery = false): void {
    positions.changed(job.owner);
    announce(store, job, delivery);
  }

  /** Ends or requeues a job that nobody's token speaks for: cancel, files that cannot be had. */
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

  async function claim(caller: Caller, worker: WorkerDeclaration): Promise<JobRow | null> {
    const job = await claimNext(db, dependencies, caller, worker);
    if (job) changed(job);
    return job;
  }

  async function end(lease: NamedLease, event: JobEvent): Promise<JobRow> {
    const { job, delivery } = await endLease(db, dependencies, lease, event);
    changed(job, delivery);
    return job;
  }

  const methods: Jobs = {
    async submit(job) {
      const row = await submit(job);
      if (row.id === job.id) announce(store, row);
      return row;
    },
    submittedBefore: (keyId, idempotency) => submittedBefore(db, keyId, idempotency),
    get: (id, owner) => getJob(db, id, owner),
    list: (owner, query) => listJobs(db, owner, query),
    remove: (ids, owner) => removeJobs(db, ids, owner),
    position: (job) => positions.of(job),
    unfinishedOf: (keyId) =>
      countUnfinished(db, keyId, config.KINORA_JOBS_PER_KEY || countedAtMost),

    claimNext: claim,
    skippedFor: (caller, worker) => skippedFor(db, caller, worker),
    async claim(caller, worker) {
      const job = await claim(caller, worker);
      return { job, skipped: job === null ? await skippedFor(db, caller, worker) : {} };
    },
    async heartbeat(id, token, heartbeat, by) {
      const answer = await renewLease(db, dependencies, { id, token, by }, heartbeat);
      void store.notify('jobChanged', `${id}:step`);
      if (heartbeat.preview !== undefined) void store.notify('jobChanged', `${id}:preview`);
      return answer;
    },
    lease: (id, token, by) => leasedJob(db, { id, token, by }),
    async complete(id, token, result, by) {
      const lease = { id, token, by };
      const { job, delivery, repeated } = await completeLease(db, dependencies, lease, result);
      if (repeated) return job;
      changed(job, delivery);
      metrics?.attempt('completed');
      metrics?.inference(result.inference_ms / 1000);
      return job;
    },
    async fail(id, token, { message, code, retryable }, by) {
      const job = await end(
        { id, token, by },
        { type: 'failed', message: storable(message), retryable, code: failureCode(code) },
      );
      metrics?.attempt(job.status === 'failed' ? 'failed' : 'requeued');
      log.info({ job: id, code, status: job.status }, 'an attempt failed');
      return job;
    },
    async release(id, token, by) {
      const job = await end({ id, token, by }, { type: 'released' });
      metrics?.attempt('released');
      return job;
    },
    async cancel(id, owner) {
      const own = and(eq(jobs.id, storable(id)), eq(jobs.owner, owner));
      // A worker that has it hears of it with its next heartbeat.
      return (await apply(own, { type: 'cancelled' }))?.job ?? null;
    },

    takeIntake: (limit, seconds) => takeWaiting(db, limit, seconds),
    async intakeDone(id, image, loras) {
      const job = await finishIntake(db, id, image, loras);
      if (job) changed(job);
      return job;
    },
    async intakeFailed(taken, message) {
      const event = { type: 'intake-failed', message: storable(message) } as const;
      return (await apply(takenBy(taken), event))?.job ?? null;
    },
    intakeReturned: (taken, seconds) => returnIntake(db, taken, seconds),

    async sweep(which) {
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
    depth: () => queueDepth(db),
    preview: (id) => previewOf(db, id),
  };
  return guarded(methods);
}

/** Every method with the database's errors named. */
function guarded(methods: Jobs): Jobs {
  const wrap =
    <Arguments extends readonly unknown[], Result>(
      method: (...args: Arguments) => Promise<Result>,
    ): ((...args: Arguments) => Promise<Result>) =>
    (...args) =>
      storageErrors(() => method(...args));
  return {
    submit: wrap(methods.submit),
    submittedBefore: wrap(methods.submittedBefore),
    get: wrap(methods.get),
    list: wrap(methods.list),
    remove: wrap(methods.remove),
    position: wrap(methods.position),
    unfinishedOf: wrap(methods.unfinishedOf),
    claimNext: wrap(methods.claimNext),
    skippedFor: wrap(methods.skippedFor),
    claim: wrap(methods.claim),
    heartbeat: wrap(methods.heartbeat),
    lease: wrap(methods.lease),
    complete: wrap(methods.complete),
    fail: wrap(methods.fail),
    release: wrap(methods.release),
    cancel: wrap(methods.cancel),
    takeIntake: wrap(methods.takeIntake),
    intakeDone: wrap(methods.intakeDone),
    intakeFailed: wrap(methods.intakeFailed),
    intakeReturned: wrap(methods.intakeReturned),
    sweep: wrap(methods.sweep),
    depth: wrap(methods.depth),
    preview: wrap(methods.preview),
  };
}

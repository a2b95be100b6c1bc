import { eq, type SQL, sql } from 'drizzle-orm';
import type { PgUpdateSetSource } from 'drizzle-orm/pg-core';
import type { Logger } from 'pino';
import type { Config } from '../config';
import type { Metrics } from '../observe/metrics';
import { deliveries, type JobRow, jobs, type NewJobRow, previews } from '../store/schema';
import type { Store } from '../store/store';
import type { Webhooks } from '../webhooks/webhooks';
import { isTerminal, type JobEvent, nextStep } from './status';

/** Dependencies of the jobs. */
export interface JobsDependencies {
  readonly store: Store;
  readonly config: Config;
  readonly outboxRow: Webhooks['outboxRow'];
  readonly log: Logger;
  readonly metrics?: Metrics;
}

/** The database's clock, as those of nodes may differ. */
export const now = sql`now()`;

/** A time so many seconds from now. */
export function inSeconds(seconds: number): SQL {
  return sql`now() + make_interval(secs => ${seconds})`;
}

/** A worker that was not seen for this time is not connected; a held claim takes up to 25 s. In seconds. */
export const listedSeconds = 60;

/** A worker as jobs name it. */
export function workerName(token: string | null, id: string | null): string {
  return `${token} ${id}`;
}

/** The columns that a job loses with its lease. */
const withoutLease = {
  leaseToken: null,
  leaseUntil: null,
  deadline: null,
  workerId: null,
  workerToken: null,
  progress: null,
} satisfies Partial<NewJobRow>;

/** What {@link createSteps} found, and what it wrote; `job` is null where nothing changed. */
interface Applied {
  readonly before: JobRow | undefined;
  readonly job: JobRow | null;
}

/**
 * The one way in which a job's status changes after its claim: the row is locked, the event applied, and a terminal
 * status written with its webhook, in one transaction.
 *
 * @returns a function of the rows, of which it takes the first, the event, and what only a completion has
 */
export function createSteps({ store, config, outboxRow }: JobsDependencies) {
  return async (
    where: SQL | undefined,
    event: JobEvent,
    extra: PgUpdateSetSource<typeof jobs> = {},
  ): Promise<Applied> => {
    const { delivery, ...applied } = await store.db.transaction(async (tx) => {
      const [before] = await tx.select().from(jobs).where(where).for('update');
      const step = before && nextStep(before, event, config.KINORA_MAX_ATTEMPTS);
      if (!step) return { before, job: null, delivery: false };
      const isRetried = event.type === 'failed' && step.status === 'created';
      const [job] = await tx
        .update(jobs)
        .set({
          ...step,
          // A finished job keeps its token, so that a repeated completion is known again.
          ...(isTerminal(step)
            ? { finishedAt: now, leaseUntil: null, deadline: null }
            : withoutLease),
          ...(isRetried && {
            failedAt: now,
            failedWorker: workerName(before.workerToken, before.workerId),
          }),
          ...extra,
        })
        .where(eq(jobs.id, before.id))
        .returning();
      if (!job) throw new Error('A locked job was deleted.');
      // That of an attempt is shown while it runs.
      await tx.delete(previews).where(eq(previews.jobId, job.id));
      const row = isTerminal(step) ? outboxRow(job, 'completed') : null;
      if (row) await tx.insert(deliveries).values(row).onConflictDoNothing();
      return { before, job, delivery: row !== null };
    });
    if (applied.job) announce(store, applied.job, delivery);
    return applied;
  };
}
export type Apply = ReturnType<typeof createSteps>;

/** Notifies other parts and nodes of a change, after its transaction. */
export function announce(store: Store, job: JobRow, delivery = false): void {
  store.notify('jobChanged', `${job.id}:status`);
  if (delivery) store.notify('deliveryDue', '');
  if (job.status !== 'created') return;
  if (job.ready) store.notify('jobAvailable', `${job.shared ? 'shared' : 'own'}:${job.owner}`);
  else store.notify('intakeDue', '');
}

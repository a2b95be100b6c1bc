import { eq, type SQL, sql } from 'drizzle-orm';
import type { PgUpdateSetSource } from 'drizzle-orm/pg-core';
import type { Logger } from 'pino';
import type { WebhookEvent } from '../../lib/contract/v3';
import type { Config } from '../config';
import type { Metrics } from '../observe/metrics';
import { deliveries, type JobRow, jobs, type NewJobRow } from '../store/schema';
import type { Database, Store } from '../store/store';
import { isTerminal, type JobStep } from './status';

/**
 * The webhook row of an event of a job, that of its end inserted in the transaction that sets the status; null
 * where it is not wanted.
 */
export type OutboxRow = (job: JobRow, event: WebhookEvent) => typeof deliveries.$inferInsert | null;

/** What the jobs need of the node. */
export interface JobsDependencies {
  readonly store: Store;
  readonly config: Config;
  readonly outboxRow: OutboxRow;
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
  startedAt: null,
  progress: null,
} satisfies Partial<NewJobRow>;

/**
 * Writes a step of a job whose row this transaction has locked; a terminal one with its webhook.
 *
 * @param extra what only a completion has
 */
export async function writeStep(
  tx: Database,
  job: JobRow,
  step: JobStep,
  outboxRow: OutboxRow,
  extra: PgUpdateSetSource<typeof jobs> = {},
): Promise<{ job: JobRow; delivery: boolean }> {
  const { status, attempt, releases, error, code } = step;
  const ended = isTerminal(step);
  const [written] = await tx
    .update(jobs)
    .set({
      status,
      attempt,
      releases,
      error,
      code,
      // A finished job keeps its token, so that a repeated completion is known again.
      ...(ended ? { finishedAt: now, leaseUntil: null, deadline: null } : withoutLease),
      ...extra,
    })
    .where(eq(jobs.id, job.id))
    .returning();
  if (!written) throw new Error('A locked job was deleted.');
  const row = ended ? outboxRow(written, 'completed') : null;
  if (row) await tx.insert(deliveries).values(row).onConflictDoNothing();
  return { job: written, delivery: row !== null };
}

/** Shortest time between two webhooks of a job's progress, in seconds. */
const progressSeconds = 10;

/**
 * Writes the webhook of an event before a job's end. `start` is written once, whatever the number of attempts;
 * `progress` replaces the job's earlier one, which was delivered or is out of date.
 *
 * @returns whether there is something to deliver
 */
export async function writeEvent(
  db: Database,
  row: typeof deliveries.$inferInsert,
): Promise<boolean> {
  const target = [deliveries.jobId, deliveries.event];
  const insertion = db.insert(deliveries).values(row);
  const { id, body } = row;
  const written = await (row.event === 'progress'
    ? insertion.onConflictDoUpdate({
        target,
        set: {
          // Another message has another id: receivers drop an id that they know.
          id,
          body,
          status: 'due',
          attempts: 0,
          attemptsBefore: 0,
          nextAt: now,
          createdAt: now,
          finishedAt: null,
        },
        setWhere: sql`${deliveries.createdAt} <= now() - make_interval(secs => ${progressSeconds})`,
      })
    : insertion.onConflictDoNothing({ target })
  ).returning({ id: deliveries.id });
  return written.length > 0;
}

/** Notifies other parts and nodes of a change, after its transaction. */
export function announce(store: Store, job: JobRow, delivery = false): void {
  void store.notify('jobChanged', `${job.id}:status`);
  if (delivery) void store.notify('deliveryDue', '');
  if (job.status !== 'created') return;
  if (job.ready) void store.notify('jobAvailable', `${job.shared ? 'shared' : 'own'}:${job.owner}`);
  else void store.notify('intakeDue', '');
}

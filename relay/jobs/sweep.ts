import { and, eq, inArray, sql } from 'drizzle-orm';
import type { Config } from '../config';
import { storageDown } from '../store/errors';
import { type JobRow, jobs, previews } from '../store/schema';
import type { Jobs } from './';
import { type JobsDependencies, writeStep } from './context';
import { type JobEvent, nextStep } from './status';

/** Jobs per transaction, and transactions per sweep: a node that was away must not stand still. */
const batch = 100;
const batches = 20;
/** How often a node may begin to fetch a job's files before the job is given up. */
export const maxIntakeAttempts = 5;

/** One kind of job that time has overtaken. */
interface Overdue {
  readonly where: ReturnType<typeof sql>;
  readonly event: JobEvent;
}

/**
 * Requeues or fails what has lost its lease or passed its deadline, and what no node could fetch the
 * files of. SKIP LOCKED lets any number of nodes sweep at once.
 *
 * @param which lost leases alone, or all but them; everything where absent
 * @returns the changed jobs
 */
export async function sweepJobs(
  { store, config, outboxRow }: JobsDependencies,
  which?: 'leases' | 'others',
): Promise<readonly { job: JobRow; delivery: boolean; event: JobEvent }[]> {
  const every: readonly Overdue[] = [
    {
      where: sql`${jobs.status} = 'processing' and ${jobs.deadline} < now()`,
      event: { type: 'deadline-passed', seconds: config.KINORA_ATTEMPT_SECONDS },
    },
    {
      where: sql`${jobs.status} = 'processing' and ${jobs.leaseUntil} < now()`,
      event: { type: 'lease-expired' },
    },
    {
      where: sql`${jobs.status} = 'created' and not ${jobs.ready}
        and ${jobs.intakeAttempts} >= ${maxIntakeAttempts} and ${jobs.intakeUntil} < now()`,
      event: {
        type: 'intake-failed',
        message: `The image could not be loaded: the server was interrupted ${maxIntakeAttempts} times.`,
      },
    },
  ];
  const kinds = every.filter(
    ({ event }) => !which || (which === 'leases') === (event.type === 'lease-expired'),
  );
  const changed: { job: JobRow; delivery: boolean; event: JobEvent }[] = [];
  for (const { where, event } of kinds) {
    for (let count = 0; count < batches; count++) {
      const swept = await store.db.transaction(async (tx) => {
        const overdue = await tx
          .select()
          .from(jobs)
          .where(where)
          .limit(batch)
          .for('update', { skipLocked: true });
        const written = [];
        for (const job of overdue) {
          const step = nextStep(job, event, config.KINORA_MAX_ATTEMPTS);
          if (step) written.push({ ...(await writeStep(tx, job, step, outboxRow)), event });
        }
        return written;
      });
      changed.push(...swept);
      if (swept.length < batch) break;
    }
  }
  if (which !== 'leases') await removePreviews(store.db);
  return changed;
}

/** Previews of jobs that no longer run: up to 48 kB each, and of use to nobody. */
async function removePreviews(db: JobsDependencies['store']['db']): Promise<void> {
  const idle = db
    .select({ id: previews.jobId })
    .from(previews)
    .innerJoin(jobs, and(eq(jobs.id, previews.jobId), sql`${jobs.status} <> 'processing'`))
    .limit(1000);
  await db.delete(previews).where(inArray(previews.jobId, idle));
}

/** The loop's pauses are up to this much longer than they are set. */
const longestPause = 1.2;
/** A busy machine is late by this much now and then, and has not stood still. In milliseconds. */
const busyMs = 1000;

/**
 * What a node's loop does every `KINORA_SWEEP_SECONDS`: it sweeps, but takes no lease away before its
 * workers could be heard for one lease period. A heartbeat that waits in a socket while the machine sleeps,
 * the database is away or the server starts again is otherwise too late for a lease it would have kept.
 *
 * One period, because a worker that lives sends a heartbeat within it at any other time too; one that is gone is
 * noticed within two. Other nodes sweep as ever.
 *
 * @param clock wall time in milliseconds: a machine that sleeps stops the monotonic clock
 */
export function createSweeper(
  jobs: Pick<Jobs, 'sweep'>,
  config: Pick<Config, 'KINORA_LEASE_SECONDS' | 'KINORA_SWEEP_SECONDS'>,
  clock: () => number = Date.now,
): () => Promise<void> {
  const leaseMs = config.KINORA_LEASE_SECONDS * 1000;
  const pauseMs = config.KINORA_SWEEP_SECONDS * 1000 * longestPause;
  // Less than half a lease leaves the other half for the next heartbeat.
  const toleratedMs = Math.max(leaseMs / 2, busyMs);
  let last = clock();
  /** Since when workers can be heard. */
  let hearing = last;

  /** Notices that more time has gone by than should have, or that the clock was set. */
  function look(expectedMs: number): void {
    const now = clock();
    if (Math.abs(now - last) > expectedMs + toleratedMs) hearing = now;
    last = now;
  }

  /** @returns what a sweep failed of, where the database was there */
  async function sweep(which: 'others' | 'leases'): Promise<{ readonly error: unknown } | null> {
    try {
      await jobs.sweep(which);
      return null;
    } catch (error) {
      if (storageDown(error) === null) return { error };
      hearing = last = clock();
      throw error;
    }
  }

  return async () => {
    look(pauseMs);
    const others = await sweep('others');
    // A database that hung answers its oldest question first, and heartbeats wait behind it.
    look(0);
    // One row that cannot be written keeps no lease of another.
    const leases = last - hearing >= leaseMs ? await sweep('leases') : null;
    last = clock();
    const failed = others ?? leases;
    if (failed) throw failed.error;
  };
}

import { and, eq, inArray, type SQL, sql } from 'drizzle-orm';
import type { Config } from '../config';
import { storageDown } from '../store/errors';
import { type JobRow, jobs, previews } from '../store/schema';
import type { Jobs } from './';
import { type JobsDependencies, writeStep } from './context';
import { type JobEvent, nextStep } from './status';

/** Jobs per transaction, and transactions per sweep, so that a long backlog does not block a node. */
const batch = 100;
const batches = 20;
/** How often a node may begin to fetch a job's files before the job is given up. */
export const maxIntakeAttempts = 5;

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
  const every: readonly { where: SQL; event: JobEvent }[] = [
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

/** Previews of jobs that no longer run: up to 48 kB each, which are no longer shown. */
async function removePreviews(db: JobsDependencies['store']['db']): Promise<void> {
  const idle = db
    .select({ id: previews.jobId })
    .from(previews)
    .innerJoin(jobs, and(eq(jobs.id, previews.jobId), sql`${jobs.status} <> 'processing'`))
    .limit(1000);
  await db.delete(previews).where(inArray(previews.jobId, idle));
}

/** The loop's pauses are at most this many times as long as configured. */
const longestPause = 1.2;
/** A delay that also occurs on a busy machine, in milliseconds. */
const busyMs = 1000;

/**
 * The work that a node repeats every `KINORA_SWEEP_SECONDS`. It takes no lease away before this node could
 * receive heartbeats for one lease period: after a sleep of the machine, an outage of the database or a
 * restart, heartbeats may still wait in a socket. One period, because a living worker sends a heartbeat within
 * it; a lost one is noticed within two. Other nodes sweep independently.
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
  /** Since when heartbeats can arrive. */
  let receivingSince = last;

  /** Detects that more time has passed than expected, or that the clock was set. */
  function checkClock(expectedMs: number): void {
    const now = clock();
    if (Math.abs(now - last) > expectedMs + toleratedMs) receivingSince = now;
    last = now;
  }

  /** @returns the error of a sweep that failed although the database answers */
  async function sweep(which: 'others' | 'leases'): Promise<{ readonly error: unknown } | null> {
    try {
      await jobs.sweep(which);
      return null;
    } catch (error) {
      if (storageDown(error) === null) return { error };
      receivingSince = last = clock();
      throw error;
    }
  }

  return async () => {
    checkClock(pauseMs);
    const others = await sweep('others');
    // A database that hung answers its oldest query first, and heartbeats wait behind it.
    checkClock(0);
    // A row that cannot be written must not delay the sweep of leases.
    const leases = last - receivingSince >= leaseMs ? await sweep('leases') : null;
    last = clock();
    const failed = others ?? leases;
    if (failed) throw failed.error;
  };
}

import { and, eq, type SQL, sql } from 'drizzle-orm';
import type { Config } from '../config';
import { jobs } from '../store/schema';
import { storageDown } from '../store/store';
import type { Jobs } from './';
import type { Apply, JobsDependencies } from './context';
import type { JobEvent } from './status';

/** Jobs of a kind that one sweep looks at, so that a long backlog does not block a node. */
const batch = 2000;
/** How often a node may begin to fetch a job's files before the job is given up. */
export const maxIntakeAttempts = 5;

/**
 * Requeues or fails what has lost its lease or passed its deadline, and what no node could fetch the
 * files of. Any number of nodes may sweep at once: each job is looked at again under its lock.
 */
export async function sweepJobs(
  { store, config, log, metrics }: JobsDependencies,
  apply: Apply,
  which?: 'leases' | 'others',
): Promise<{ requeued: number; failed: number }> {
  const message = `The image could not be loaded: the server was interrupted ${maxIntakeAttempts} times.`;
  const kinds: readonly (readonly [SQL, JobEvent])[] = [
    [
      sql`${jobs.status} = 'processing' and ${jobs.deadline} < now()`,
      { type: 'deadline-passed', seconds: config.KINORA_ATTEMPT_SECONDS },
    ],
    [sql`${jobs.status} = 'processing' and ${jobs.leaseUntil} < now()`, { type: 'lease-expired' }],
    [
      sql`${jobs.status} = 'created' and not ${jobs.ready}
        and ${jobs.intakeAttempts} >= ${maxIntakeAttempts} and ${jobs.intakeUntil} < now()`,
      { type: 'intake-failed', message },
    ],
  ];
  const counts = { requeued: 0, failed: 0 };
  for (const [overdue, event] of kinds) {
    if (which && (which === 'leases') !== (event.type === 'lease-expired')) continue;
    const rows = await store.db.select({ id: jobs.id }).from(jobs).where(overdue).limit(batch);
    for (const { id } of rows) {
      const { job } = await apply(and(eq(jobs.id, id), overdue), event);
      if (!job) continue;
      counts[job.status === 'created' ? 'requeued' : 'failed'] += 1;
      if (event.type === 'intake-failed') continue;
      metrics?.attempt('expired');
      log.info({ job: id, status: job.status, why: event.type }, 'a lease was ended');
    }
  }
  return counts;
}

/** The loop's pauses are at most this many times as long as configured. */
const longestPause = 1.2;
/** A delay that also occurs on a busy machine, in milliseconds. */
const busyMs = 1000;

/**
 * The work that a node repeats every `KINORA_SWEEP_SECONDS`. It takes no lease away before this node could receive
 * heartbeats for one lease period, within which a living worker sends one (README.md).
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

  async function sweep(which: 'others' | 'leases'): Promise<void> {
    try {
      await jobs.sweep(which);
    } catch (error) {
      if (storageDown(error)) receivingSince = last = clock();
      throw error;
    }
  }

  return async () => {
    checkClock(pauseMs);
    try {
      await sweep('others');
    } finally {
      // A row that cannot be written must not delay the sweep of leases. A database that hung answers its oldest query
      // first, and heartbeats wait behind it.
      checkClock(0);
      if (last - receivingSince >= leaseMs) await sweep('leases');
      last = clock();
    }
  };
}

import type { Config } from '../config';
import type { Jobs } from '../relay';

/** The loop's pauses are up to this much longer than they are set. */
const longestPause = 1.2;
/** A busy machine is late by this much now and then, and has not stood still. In milliseconds. */
const busyMs = 1000;

/**
 * What a node's loop does every `KINORA_SWEEP_SECONDS`: it sweeps, but takes no lease away before its
 * workers could be heard for one lease period. A beat that waits in a socket while the machine sleeps,
 * the database is away or the server starts again is otherwise too late for a lease it would have kept.
 *
 * One period, because a worker that lives beats within it at any other time too; one that is gone is
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
  // Less than half a lease leaves the other half for the next beat.
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

  return async () => {
    look(pauseMs);
    try {
      await jobs.sweep('others');
      // A database that hung answers its oldest question first, and beats wait behind it.
      look(0);
      if (last - hearing >= leaseMs) await jobs.sweep('leases');
    } catch (error) {
      hearing = clock();
      throw error;
    } finally {
      last = clock();
    }
  };
}

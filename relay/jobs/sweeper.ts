import type { Config } from '../config';
import { storageDown } from '../store/errors';
import type { Jobs } from './types';

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

import type { Beat } from '../contract/v3/worker';
import type { WorkerClient } from './client';
import { isLeaseLost, isUnauthorized } from './transport-error';

/** A lease to be kept. */
export interface KeptLease {
  readonly id: string;
  readonly token: string;
  readonly beatEveryMs: number;
}

/** What the keeper asks and tells. */
export interface LeaseWatcher {
  /** How far the work is. */
  state(): Promise<Omit<Beat, 'lease_token'>>;
  /** The job is no longer this worker's: stop at once. */
  onLost(): void;
  /** The relay does not take this worker any more. */
  onRefused(error: unknown): void;
  /** Whether the last beat was answered. */
  onHeard(heard: boolean): void;
}

/** A timer this late means that the machine, or the tab, has slept. */
const sleptMs = 8000;
/** How long a beat may take before the next one is sent. */
const beatLimitMs = 10_000;

/**
 * Beats until the signal, by its own timer: a step that takes minutes does not lose the lease. After a
 * sleep it asks first whether the lease still stands. A beat that is not answered changes nothing:
 * only the relay ends a lease.
 */
export async function keepLease(
  client: WorkerClient,
  lease: KeptLease,
  watcher: LeaseWatcher,
  signal: AbortSignal,
): Promise<void> {
  const { clock } = client;
  const { id, token } = lease;
  while (!signal.aborted) {
    const options = { signal, attempts: 1, timeoutMs: beatLimitMs };
    try {
      await client.beat(id, { lease_token: token, ...(await watcher.state()) }, options);
      watcher.onHeard(true);
    } catch (thrown) {
      if (!goesOn(thrown)) return;
    }
    const before = clock.now();
    try {
      await clock.sleep(lease.beatEveryMs, signal);
      if (clock.now() - before > lease.beatEveryMs + sleptMs) {
        await client.lease(id, token, options);
      }
    } catch (thrown) {
      if (!goesOn(thrown)) return;
    }
  }

  function goesOn(thrown: unknown): boolean {
    if (signal.aborted) return false;
    if (isLeaseLost(thrown)) watcher.onLost();
    else if (isUnauthorized(thrown)) watcher.onRefused(thrown);
    else {
      watcher.onHeard(false);
      return true;
    }
    return false;
  }
}

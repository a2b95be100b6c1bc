import type { Heartbeat } from '../contract/v3';
import type { WorkerClient } from './client';
import { isLeaseLost, isUnauthorized } from './transport-error';

/** A lease to be kept. */
export interface KeptLease {
  readonly id: string;
  readonly token: string;
  readonly heartbeatMs: number;
}

/** Calls of the keeper. */
export interface LeaseWatcher {
  /** How far the work is. */
  state(): Promise<Omit<Heartbeat, 'lease_token'>>;
  /** The job is no longer this worker's: stop at once. */
  onLost(): void;
  /** The relay does not take this worker any more. */
  onRefused(error: unknown): void;
  /** Whether the last heartbeat was answered. */
  onAnswered(answered: boolean): void;
}

/** A timer this late means that the machine, or the tab, has slept. */
const sleptMs = 8000;
/** How long a heartbeat may take before the next one is sent. */
const heartbeatTimeoutMs = 10_000;

/**
 * Sends heartbeats until the signal, by its own timer: a step that takes minutes does not lose the lease. After a
 * sleep it asks first whether the lease still stands. A heartbeat that is not answered changes nothing:
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
    const options = { signal, attempts: 1, timeoutMs: heartbeatTimeoutMs };
    try {
      await client.heartbeat(id, { lease_token: token, ...(await watcher.state()) }, options);
      watcher.onAnswered(true);
    } catch (thrown) {
      if (!goesOn(thrown)) return;
    }
    const before = clock.now();
    try {
      await clock.sleep(lease.heartbeatMs, signal);
      if (clock.now() - before > lease.heartbeatMs + sleptMs) {
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
      watcher.onAnswered(false);
      return true;
    }
    return false;
  }
}

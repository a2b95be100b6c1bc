import { setMaxListeners } from 'node:events';
import { Signal } from '../../../lib/contract/signal';
import { ApiError } from '../../../lib/contract/v3';
import type { Relay } from '../../open';
import type { JobRow } from '../../store/schema';
import type { Store } from '../../store/store';
import { isTerminal } from './describe';

/** What changed in a job. */
export type Change = 'status' | 'step' | 'preview';
type Listener = (change: Change) => void;

/**
 * Listeners of this node by job. All share one subscription of the database, made for the first of
 * them. Messages may be lost, so waiting answers also read the job at intervals.
 */
class Changes {
  readonly #listeners = new Map<string, Set<Listener>>();
  #subscription: Promise<unknown> | null = null;

  constructor(readonly store: Store) {}

  /** Number of jobs with listeners. */
  get watched(): number {
    return this.#listeners.size;
  }

  /** Calls back for every change of a job. @returns ends it */
  async watch(id: string, listener: Listener): Promise<() => void> {
    const listeners = this.#listeners.get(id) ?? new Set();
    this.#listeners.set(id, listeners);
    listeners.add(listener);
    const end = () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(id) === listeners) this.#listeners.delete(id);
    };
    try {
      this.#subscription ??= this.store.listen('jobChanged', (payload) => this.#emit(payload));
      await this.#subscription;
      return end;
    } catch (error) {
      this.#subscription = null;
      end();
      throw error;
    }
  }

  #emit(payload: string): void {
    const [id = '', change] = payload.split(':');
    if (change !== 'status' && change !== 'step' && change !== 'preview') return;
    for (const listener of this.#listeners.get(id) ?? []) listener(change);
  }
}

const changesByStore = new WeakMap<Store, Changes>();

/** The one instance of a node. */
export function changesOf(store: Store): Changes {
  const changes = changesByStore.get(store) ?? new Changes(store);
  changesByStore.set(store, changes);
  return changes;
}

/** Longest time between two reads of a job that an answer waits for, in milliseconds. */
export const readEveryMs = 5000;

/**
 * Calls back once, when the first of the signals aborts, or at once where one has aborted already. Not
 * with `AbortSignal.any`: the node's own signal exists as long as the node, and would keep a reference to
 * every request that ever waited.
 *
 * @returns removes the listeners
 */
export function onAbort(signals: readonly AbortSignal[], wake: () => void): () => void {
  const unhook = () => {
    for (const signal of signals) signal.removeEventListener('abort', first);
  };
  const first = () => {
    unhook();
    wake();
  };
  if (signals.some(({ aborted }) => aborted)) {
    wake();
    return unhook;
  }
  for (const signal of signals) {
    // The node's own signal has as many listeners as there are open answers.
    setMaxListeners(0, signal);
    signal.addEventListener('abort', first);
  }
  return unhook;
}

/**
 * Waits until a job has ended, the time is over, the client has disconnected, or the server stops. It does
 * not wait where the key has too many open answers already: the caller can request the result again.
 *
 * @returns the job's latest row; null when it was deleted meanwhile
 */
export async function waitForEnd(
  relay: Relay,
  job: JobRow,
  seconds: number,
  client: AbortSignal,
): Promise<JobRow | null> {
  const endCount = tryCountOpen(relay.store, job.keyId);
  const until = performance.now() + (endCount ? seconds * 1000 : 0);
  const signal = new Signal();
  const wake = () => signal.raise();
  const unhook = onAbort([relay.stopping, client], wake);
  let end = () => {};
  try {
    end = await changesOf(relay.store).watch(job.id, (change) => {
      if (change === 'status') wake();
    });
    while (true) {
      // Read after the subscription: what changed before it is seen here.
      const now = await relay.jobs.get(job.id);
      const left = until - performance.now();
      if (now === null || isTerminal(now) || left <= 0) return now;
      if (relay.stopping.aborted || client.aborted) return now;
      await signal.wait(Math.min(left, readEveryMs));
    }
  } finally {
    end();
    unhook();
    endCount?.();
  }
}

/** Answers to one key that a node keeps open at a time, at most: events and waits for results. */
export const maxOpen = 50;

const openByNode = new WeakMap<Store, Map<string, number>>();

/**
 * Counts one more open answer of a key: each costs a connection, and a query every few seconds.
 *
 * @param store of the node
 * @returns ends the count; calling it again changes nothing
 * @throws ApiError `RATE_LIMITED` when the key has too many open already
 */
export function countOpen(store: Store, keyId: string): () => void {
  const end = tryCountOpen(store, keyId);
  if (end) return end;
  throw new ApiError(
    'RATE_LIMITED',
    `This key has ${maxOpen} answers open, and may have no more.`,
    {
      headers: { 'Retry-After': '5' },
      remedy: 'Close one, or request the results at `urls.get`.',
    },
  );
}

/** {@link countOpen} without an error: null when the key has too many open answers. */
export function tryCountOpen(store: Store, keyId: string): (() => void) | null {
  const counts = openByNode.get(store) ?? new Map<string, number>();
  openByNode.set(store, counts);
  const open = counts.get(keyId) ?? 0;
  if (open >= maxOpen) return null;
  counts.set(keyId, open + 1);
  let counted = true;
  return () => {
    if (!counted) return;
    counted = false;
    const left = (counts.get(keyId) ?? 1) - 1;
    if (left > 0) counts.set(keyId, left);
    else counts.delete(keyId);
  };
}

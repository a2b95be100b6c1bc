import { EventEmitter } from 'node:events';
import { Signal } from '../../lib/contract';
import type { JobRow } from '../store/schema';
import type { Store } from '../store/store';
import type { Jobs } from './index';
import { isTerminal } from './status';

const changes = ['status', 'step', 'preview'] as const;
/** What changed in a job. */
export type Change = (typeof changes)[number];

/** Longest time between two reads of a job that an answer waits for, in milliseconds. */
const readEveryMs = 5000;
/** Answers to one key that a node keeps open at a time, at most: events and waits for results. */
export const maxOpen = 50;

/**
 * Answers of this node that wait for changes of jobs. Messages may be lost, so a watched job is also read at
 * intervals.
 *
 * @param stopping ends every watch
 */
export function createWatches(dependencies: {
  readonly store: Pick<Store, 'listen'>;
  readonly jobs: Pick<Jobs, 'get'>;
  readonly stopping: AbortSignal;
}) {
  const { store, jobs, stopping } = dependencies;
  /** Events have the names of jobs. */
  const watched = new EventEmitter().setMaxListeners(0);
  const openAnswers = new Map<string, number>();
  store.listen('jobChanged', (payload) => {
    const [id = '', name] = payload.split(':');
    const change = changes.find((one) => one === name);
    if (change) watched.emit(id, change);
  });
  stopping.addEventListener('abort', () => {
    for (const id of watched.eventNames()) watched.emit(id, 'status');
  });

  return {
    /** Number of jobs that are watched. */
    get count(): number {
      return watched.eventNames().length;
    },
    /**
     * Counts one more open answer of a key: each costs a connection, and a query every few seconds.
     *
     * @returns ends the count, once; null where the key has {@link maxOpen} already
     */
    open(keyId: string): (() => void) | null {
      const open = openAnswers.get(keyId) ?? 0;
      if (open >= maxOpen) return null;
      openAnswers.set(keyId, open + 1);
      let counted = true;
      return () => {
        if (!counted) return;
        counted = false;
        const left = (openAnswers.get(keyId) ?? 1) - 1;
        if (left > 0) openAnswers.set(keyId, left);
        else openAnswers.delete(keyId);
      };
    },
    /**
     * The row of a job at once and after every change, until it has ended or was deleted, the signal aborts, or
     * the node is being stopped. Changes are flags and not a queue: a slow reader gets the latest row.
     *
     * @param options.until last read, as `performance.now()` counts; default never
     * @param options.only the change to wait for; default every one
     */
    async *follow(
      id: string,
      signal: AbortSignal,
      { until = Number.POSITIVE_INFINITY, only }: { until?: number; only?: Change } = {},
    ): AsyncGenerator<{ job: JobRow; changed: ReadonlySet<Change> }, void> {
      const wake = new Signal();
      const onAbort = () => wake.raise();
      let changed = new Set<Change>(changes);
      const onChange = (change: Change) => {
        changed.add(change);
        if (change === (only ?? change)) wake.raise();
      };
      watched.on(id, onChange);
      signal.addEventListener('abort', onAbort);
      try {
        while (!signal.aborted) {
          const seen = changed;
          changed = new Set();
          const job = await jobs.get(id);
          if (job === null) return;
          yield { job, changed: seen };
          const left = until - performance.now();
          if (isTerminal(job) || left <= 0 || stopping.aborted) return;
          await wake.wait(Math.min(left, readEveryMs));
        }
      } finally {
        watched.off(id, onChange);
        signal.removeEventListener('abort', onAbort);
      }
    },
  };
}

export type Watches = ReturnType<typeof createWatches>;

import { useLiveQuery } from 'dexie-react-hooks';
import { useEffect, useState, useSyncExternalStore } from 'react';
import { type QueueEntry, type QueuePause, RequestQueue } from '../lib/predictions/queue/queue';
import { QueueRunner } from '../lib/predictions/queue/queue-runner';
import { idle, type RunState } from '../lib/predictions/run-state';
import { getRunner, useRun } from './runner';

let queueRunner: QueueRunner | null = null;

/** The queue of this page. Call it in event handlers and effects only: it does not exist on the server. */
export function getQueueRunner(): QueueRunner {
  const runner = getRunner();
  queueRunner ??= new QueueRunner(
    new RequestQueue(runner.store.database),
    runner,
    async ({ name }) => {
      // The library is large, and the page must not wait for it.
      const { openLora } = await import('../lib/library');
      return { name, file: await openLora(name) };
    },
  );
  return queueRunner;
}

/** What waits in this browser, whatever tab has added it. */
export interface QueueView {
  readonly entries: readonly QueueEntry[];
  /** Null while the queue is not paused. */
  readonly pause: QueuePause | null;
}

const nothing: QueueView = { entries: [], pause: null };

/** The queue as it changes. A page that uses it runs what waits, unless another tab does. */
export function useQueue(): QueueView {
  const view = useLiveQuery(readQueue, []) ?? nothing;
  const runnable = view.entries.length > 0 && view.pause === null;
  useEffect(() => {
    if (runnable) getQueueRunner().wake();
  }, [runnable]);
  return view;
}

async function readQueue(): Promise<QueueView> {
  const { queue } = getQueueRunner();
  try {
    return { entries: await queue.list(), pause: await queue.pauseState() };
  } catch {
    return nothing; // The list of predictions says why the database cannot be read.
  }
}

const subscribe = (listener: () => void) => getQueueRunner().subscribe(listener);
const isActive = () => getQueueRunner().isActive();
const isActiveOnServer = () => false;

/**
 * The run of this tab as the studio shows it: between two runs of the queue the one that has just ended, so
 * that focus and scroll position stay.
 */
export function useShownRun(): RunState {
  const run = useRun();
  const active = useSyncExternalStore(subscribe, isActive, isActiveOnServer);
  const [last, setLast] = useState<RunState>(idle);
  const shown = run.status === 'idle' && active ? last : run;
  if (shown !== last) setLast(shown);
  return shown;
}

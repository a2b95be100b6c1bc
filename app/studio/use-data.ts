import { useEffect, useState, useSyncExternalStore } from 'react';
import type { QueueEntry, QueuePause } from '../../lib/predictions/queue/queue';
import { idle, type RunState } from '../../lib/predictions/run-state';
import type * as StudioData from './data';

export type Data = typeof StudioData;

let data: Data | null = null;

/** Runner, queue and database of this page. They are large: the form can be filled in before they are here. */
export async function loadData(): Promise<Data> {
  data ??= await import('./data');
  return data;
}

/**
 * Begins a subscription as soon as the data is loaded.
 *
 * @param begin returns what ends the subscription
 * @returns the same, also for one that has not begun
 */
export function follow(begin: (data: Data) => () => void): () => void {
  let ended = false;
  let end = () => {};
  loadData().then(
    (loaded) => {
      if (!ended) end = begin(loaded);
    },
    () => {}, // The gallery needs the same scripts, and shows that they cannot be loaded.
  );
  return () => {
    ended = true;
    end();
  };
}

/**
 * The answer of a query of the database, again whenever it changes; undefined before the first one.
 *
 * @param query of a module, not of a component; does not reject
 */
export function useStored<T>(query: (data: Data) => Promise<T>): T | undefined {
  const [answer, setAnswer] = useState<T>();
  useEffect(
    () =>
      follow((loaded) => {
        const subscription = loaded
          .liveQuery(() => query(loaded))
          .subscribe((latest) => setAnswer(() => latest));
        return () => subscription.unsubscribe();
      }),
    [query],
  );
  return answer;
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
  const view = useStored(readQueue) ?? nothing;
  const runnable = view.entries.length > 0 && view.pause === null;
  useEffect(() => {
    if (runnable) data?.getQueueRunner().wake();
  }, [runnable]);
  return view;
}

async function readQueue({ getQueueRunner }: Data): Promise<QueueView> {
  const { queue } = getQueueRunner();
  try {
    return { entries: await queue.list(), pause: await queue.pauseState() };
  } catch {
    return nothing; // The list of predictions says why the database cannot be read.
  }
}

const subscribeRun = (listener: () => void) =>
  follow(({ getRunner }) => {
    listener();
    return getRunner().subscribe(listener);
  });
const getRun = () => data?.getRunner().getSnapshot() ?? idle;
const getRunOnServer = () => idle;

const subscribeQueue = (listener: () => void) =>
  follow(({ getQueueRunner }) => {
    listener();
    return getQueueRunner().subscribe(listener);
  });
const isActive = () => data?.getQueueRunner().isActive() ?? false;
const isHeld = () => data?.getQueueRunner().isHeld() ?? false;
const onServer = () => false;

/** Whether the queue waits until a request has been edited. */
export function useHeldQueue(): boolean {
  return useSyncExternalStore(subscribeQueue, isHeld, onServer);
}

/**
 * The run of this tab as the studio shows it: between two runs of the queue the one that has just ended, so
 * that focus and scroll position stay.
 */
export function useShownRun(): RunState {
  const run = useSyncExternalStore(subscribeRun, getRun, getRunOnServer);
  const active = useSyncExternalStore(subscribeQueue, isActive, onServer);
  const [last, setLast] = useState<RunState>(idle);
  const shown = run.status === 'idle' && active ? last : run;
  if (shown !== last) setLast(shown);
  return shown;
}

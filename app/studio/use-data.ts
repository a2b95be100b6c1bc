import { useEffect, useState, useSyncExternalStore } from 'react';
import type { QueuePause, QueueState } from '../../lib/predictions/queue';
import { idle, type RunState } from '../../lib/predictions/run-state';
import type { Waiting } from '../../lib/predictions/store';
import { useAnswer } from '../shared/browser';
import { firstAct } from '../shared/first-act';
import type * as StudioData from './data';

export type Data = typeof StudioData;

let data: Data | null = null;

/** Whether this browser has nothing of the app yet, so that there is nothing to show before a person does something. */
let isNew: Promise<boolean> | null = null;

async function hasNothing(): Promise<boolean> {
  // An address may bring a model or a request.
  if (window.location.search !== '') return false;
  try {
    return (await indexedDB.databases()).length === 0;
  } catch {
    return false; // Not every browser tells.
  }
}

/** Whether there is nothing to read; false until that is known. */
export function useNew(): boolean {
  return (
    useAnswer(() => {
      isNew ??= hasNothing();
      return isNew;
    }, []) ?? false
  );
}

/**
 * Runner, queue and database of this page. They are large: the form can be filled in before they are here, and where
 * nothing is stored they come with the first act of a person.
 */
export async function loadData(): Promise<Data> {
  isNew ??= hasNothing();
  if (await isNew) await firstAct();
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
  readonly waiting: readonly Waiting[];
  /** Null while the queue is not paused. */
  readonly pause: QueuePause | null;
}

const stopped: QueueState = { active: false, held: false };
const nothing: QueueView = { waiting: [], pause: null };

/**
 * The queue as it changes. A page that uses it runs what waits, unless another tab does.
 *
 * @param working whether a run of this browser is under way
 */
export function useQueue(working: boolean): QueueView {
  const view = useStored(readQueue) ?? nothing;
  const runnable = view.waiting.length > 0 && !working && view.pause === null;
  useEffect(() => {
    if (runnable) return data?.getQueue().wakeLater();
  }, [runnable]);
  return view;
}

async function readQueue({ getQueue, getRunner }: Data): Promise<QueueView> {
  try {
    return { waiting: await getRunner().store.waiting(), pause: await getQueue().pauseState() };
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
  follow(({ getQueue }) => {
    listener();
    return getQueue().subscribe(listener);
  });
const getQueueState = () => data?.getQueue().getSnapshot() ?? stopped;
const getStopped = () => stopped;

/** What the queue of this tab is at. */
export function useQueueState(): QueueState {
  return useSyncExternalStore(subscribeQueue, getQueueState, getStopped);
}

/**
 * The run of this tab as the studio shows it: between two runs of the queue the one that has just ended, so
 * that focus and scroll position stay.
 */
export function useShownRun(): RunState {
  const run = useSyncExternalStore(subscribeRun, getRun, getRunOnServer);
  const { active } = useQueueState();
  const [last, setLast] = useState<RunState>(idle);
  const shown = run.status === 'idle' && active ? last : run;
  if (shown !== last) setLast(shown);
  return shown;
}

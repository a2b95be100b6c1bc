import { useSyncExternalStore } from 'react';
import { KinoraError, Observable, toKinoraError } from '../../lib/contract';
import { createWorkerClient, type WorkerClient } from '../../lib/predictions/worker-client';
import type { ServedJob, ServeOptions, ServingApi, UnfinishedLease } from '../../lib/worker/api';
import {
  advanceConnection,
  type Connection,
  disconnected,
  type ServingEvent,
} from '../../lib/worker/connection';
import { keepAwake } from '../shared/browser';
import { percentDone } from '../shared/run-progress';
import { showJob } from '../shared/running-job';
import { readText, writeText } from '../shared/stored-text';

/** Finished jobs in the list; older ones are only counted. */
const maxListedJobs = 50;

/** State of the Serve page. */
export interface ServingState {
  readonly connection: Connection;
  /** Newest first, since the page was opened. */
  readonly served: readonly ServedJob[];
  readonly completed: number;
  /** The options of the connection, without the token; null while there is none. */
  readonly options: Omit<ServeOptions, 'token'> | null;
}

const notServing: ServingState = {
  connection: disconnected,
  served: [],
  completed: 0,
  options: null,
};

/** Pure reducer of the Serve page. */
function advanceServing(state: ServingState, event: ServingEvent): ServingState {
  const connection = advanceConnection(state.connection, event);
  if (event.type !== 'ended')
    return connection === state.connection ? state : { ...state, connection };
  const served = [event.job, ...state.served].slice(0, maxListedJobs);
  const completed = state.completed + (event.job.outcome === 'completed' ? 1 : 0);
  return { ...state, connection, served, completed };
}

/**
 * Connects this page to the server. The connection continues on other pages of the app and ends when the document
 * is closed.
 */
export class ServingStore extends Observable<ServingState> {
  readonly #watchers = new Set<(event: ServingEvent) => void>();
  /** The lease of the current job, to be released if the page is closed. */
  #lease: UnfinishedLease | null = null;
  #end: AbortController | null = null;
  /** Whether `serve` was called in the worker. */
  #serving = false;

  constructor(readonly client: WorkerClient<ServingApi>) {
    super(notServing);
  }

  /** Calls `watcher` with every event. @returns a function that ends this */
  watch(watcher: (event: ServingEvent) => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** Connects and serves. Resolves when the connection has ended; errors are in the state. */
  async connect(options: ServeOptions): Promise<void> {
    if (this.#end) return;
    const end = new AbortController();
    this.#end = end;
    const { token, ...shown } = options;
    this.set({ ...this.getSnapshot(), options: shown });
    this.#dispatch({ type: 'connecting' });
    try {
      await acquireServingLock(options.name, end.signal);
      if (end.signal.aborted) return this.#dispatch({ type: 'disconnected', error: null });
      keepAwake(end.signal);
      window.addEventListener('pagehide', () => this.#releaseNow(options.server, token), end);
      const { api, crashed } = this.client.open();
      this.#serving = true;
      const serving = api.serve(
        options,
        (event) => this.#dispatch(event),
        (lease) => {
          this.#lease = lease;
        },
      );
      await Promise.race([serving, crashed]);
    } catch (thrown) {
      this.#dispatch({ type: 'disconnected', error: toKinoraError(thrown).toRecord() });
    } finally {
      this.client.close();
      this.#lease = null;
      this.#serving = false;
      this.#end = null;
      end.abort();
      this.set({ ...this.getSnapshot(), options: null });
    }
  }

  pause(): void {
    void this.#call((api) => api.pause());
  }

  resume(): void {
    void this.#call((api) => api.resume());
  }

  /** Ends the current job, releases its lease and disconnects. */
  disconnect(): void {
    if (!this.#serving) this.#end?.abort();
    void this.#call((api) => api.disconnect());
  }

  retryNow(): void {
    void this.#call((api) => api.retryNow());
  }

  async #call(work: (api: ServingApi) => Promise<void>): Promise<void> {
    if (!this.#serving) return;
    // If the worker crashes, `connect` reports it.
    await work(this.client.open().api).catch(() => {});
  }

  /** Releases the lease when the page is closed: only a `keepalive` request outlives page and worker. */
  #releaseNow(server: string, token: string): void {
    const lease = this.#lease;
    if (!lease) return;
    fetch(new URL(`/api/worker/jobs/${lease.id}/release`, server), {
      method: 'POST',
      keepalive: true,
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ lease_token: lease.token }),
      // The page is closing: the lease ends by itself.
    }).catch(() => {});
  }

  #dispatch(event: ServingEvent): void {
    this.set(advanceServing(this.getSnapshot(), event));
    for (const watcher of this.#watchers) watcher(event);
  }

  override set(state: ServingState): void {
    super.set(state);
    showServed(state.connection);
  }
}

/** Shows the current job on the other pages. */
function showServed(connection: Connection): void {
  const progress = connection.status === 'working' ? connection.progress : null;
  showJob(
    '/serve',
    progress && {
      percent: percentDone(progress),
      secondsRemaining: progress.secondsRemaining,
      state: 'running',
    },
  );
}

let store: ServingStore | null = null;

/** The serving store of this page. Call it in event handlers and effects only. */
export function getServing(): ServingStore {
  store ??= new ServingStore(createServingClient());
  return store;
}

/** Checks the form of a token. @throws KinoraError `REQUEST_INVALID` */
export function checkToken(text: string): string {
  const token = text.trim();
  // An HTTP header accepts no other characters.
  if (/^[\x21-\x7e]{1,200}$/.test(token)) return token;
  throw new KinoraError(
    'REQUEST_INVALID',
    token === '' ? 'There is no worker token.' : 'This is not a worker token.',
    { remedy: 'Create one on the Keys page of this server, or with “npm run keys”.' },
  );
}

/** The serving worker of this page. */
function createServingClient(): WorkerClient<ServingApi> {
  const start = () =>
    new Worker(new URL('../../workers/serving.ts', import.meta.url), { type: 'module' });
  return createWorkerClient<ServingApi>('serving worker', start);
}

const subscribe = (listener: () => void) => getServing().subscribe(listener);
const getSnapshot = () => getServing().getSnapshot();
const getServerSnapshot = () => notServing;

/** State of the Serve page. */
export function useServing(): ServingState {
  return useSyncExternalStore(subscribe, getSnapshot, getServerSnapshot);
}

/** Web Lock of the tab that serves, and where it notes who it is for the others. */
const servingLock = 'kinora:serving';
const holderKey = 'kinora:serving-tab';

/**
 * Acquires the serving lock of this browser and holds it until `signal` aborts. Browsers do not freeze a
 * hidden tab that holds a Web Lock.
 *
 * @throws KinoraError `BUSY`, with the name of the tab that holds the lock
 */
async function acquireServingLock(name: string, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    navigator.locks
      .request(servingLock, { ifAvailable: true }, async (lock) => {
        if (!lock) throw inUse();
        const since = new Date().toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
        writeText(holderKey, `, as “${name}” since ${since}`);
        resolve();
        await new Promise<void>((end) => {
          if (signal.aborted) end();
          signal.addEventListener('abort', () => end());
        });
      })
      .catch(reject);
  });
}

function inUse(): KinoraError {
  // A browser that stores nothing says only that there is another tab.
  const holder = readText(holderKey) ?? '';
  return new KinoraError('BUSY', `Another tab of this browser already serves${holder}.`, {
    remedy: 'Use that tab, or disconnect it first: both would use the same GPU.',
  });
}

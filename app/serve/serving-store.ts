import { KinoraError, toKinoraError } from '../../lib/contract/errors';
import type { ServedJob, ServeOptions, UnfinishedLease } from '../../lib/worker/api';
import {
  advanceConnection,
  type Connection,
  disconnected,
  type ServingEvent,
} from '../../lib/worker/connection';
import { keepAwake } from '../shared/browser';
import { serveAlone } from './one-tab';
import { createServingHost, type ServingHost } from './serving-client';

/** Jobs done that are shown; older ones are only counted. */
const shownJobs = 50;

/** What this page knows of its serving. */
export interface ServingState {
  readonly connection: Connection;
  /** Newest first. They are forgotten with the page. */
  readonly served: readonly ServedJob[];
  readonly completed: number;
  /** What it is connected with, for as long as it is; the token is left out. */
  readonly options: Omit<ServeOptions, 'token'> | null;
}

export const notServing: ServingState = {
  connection: disconnected,
  served: [],
  completed: 0,
  options: null,
};

/** The serving of this page as one pure reducer. */
export function advanceServing(state: ServingState, event: ServingEvent): ServingState {
  const connection = advanceConnection(state.connection, event);
  if (event.type !== 'ended')
    return connection === state.connection ? state : { ...state, connection };
  const served = [event.job, ...state.served].slice(0, shownJobs);
  const completed = state.completed + (event.job.outcome === 'completed' ? 1 : 0);
  return { ...state, connection, served, completed };
}

/**
 * The serving of this page as an external store in React's sense. It goes on while the person is
 * elsewhere in the app, and ends with the page.
 */
export class ServingStore {
  #state = notServing;
  readonly #listeners = new Set<() => void>();
  readonly #watchers = new Set<(event: ServingEvent) => void>();
  /** The lease that is lost when the page goes now. */
  #lease: UnfinishedLease | null = null;
  #over: AbortController | null = null;
  /** Whether the worker has been told to serve. */
  #serving = false;

  constructor(readonly host: ServingHost) {}

  readonly getSnapshot = (): ServingState => this.#state;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Sees every event from now on. */
  watch(watcher: (event: ServingEvent) => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** Connects and serves; resolves when that has ended. What happens is in the state. */
  async connect(options: ServeOptions): Promise<void> {
    if (this.#over) return;
    const over = new AbortController();
    this.#over = over;
    const { token, ...shown } = options;
    this.#set({ ...this.#state, options: shown });
    this.#take({ type: 'connecting' });
    try {
      await serveAlone(options.name, over.signal);
      if (over.signal.aborted) return this.#take({ type: 'disconnected', error: null });
      keepAwake(over.signal);
      window.addEventListener('pagehide', () => this.#releaseNow(options.server, token), over);
      const { api, crashed } = this.host.open();
      this.#serving = true;
      const serving = api.serve(
        options,
        (event) => this.#take(event),
        (lease) => {
          this.#lease = lease;
        },
      );
      await Promise.race([serving, crashed]);
    } catch (thrown) {
      this.#take({ type: 'disconnected', error: toKinoraError(thrown).toRecord() });
    } finally {
      this.host.close();
      this.#lease = null;
      this.#serving = false;
      this.#over = null;
      over.abort();
      this.#set({ ...this.#state, options: null });
    }
  }

  pause(): void {
    void this.#call((api) => api.pause());
  }

  resume(): void {
    void this.#call((api) => api.resume());
  }

  /** Ends the current job and hands its lease back. */
  disconnect(): void {
    if (!this.#serving) this.#over?.abort();
    void this.#call((api) => api.disconnect());
  }

  retryNow(): void {
    void this.#call((api) => api.retryNow());
  }

  async #call(work: (api: ReturnType<ServingHost['open']>['api']) => Promise<void>): Promise<void> {
    if (!this.#serving) return;
    // A worker that dies in it ends `connect` too, which says so.
    await work(this.host.open().api).catch(() => {});
  }

  /** The page goes, and its worker with it: only a request that outlives it can hand the lease back. */
  #releaseNow(server: string, token: string): void {
    const lease = this.#lease;
    if (!lease) return;
    fetch(new URL(`/api/worker/jobs/${lease.id}/release`, server), {
      method: 'POST',
      keepalive: true,
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ lease_token: lease.token }),
    }).catch(() => {});
  }

  #take(event: ServingEvent): void {
    this.#set(advanceServing(this.#state, event));
    for (const watcher of this.#watchers) watcher(event);
  }

  #set(state: ServingState): void {
    if (state === this.#state) return;
    this.#state = state;
    for (const listener of this.#listeners) listener();
  }
}

let store: ServingStore | null = null;

/** The one connection of this page. For handlers and effects: the server has none. */
export function getServing(): ServingStore {
  store ??= new ServingStore(createServingHost());
  return store;
}

/** @throws KinoraError `REQUEST_INVALID` for a token that cannot be one */
export function checkToken(text: string): string {
  const token = text.trim();
  // A header takes nothing else.
  if (/^[\x21-\x7e]{1,200}$/.test(token)) return token;
  throw new KinoraError(
    'REQUEST_INVALID',
    token === '' ? 'There is no worker token.' : 'This is not a worker token.',
    { remedy: 'Create one on the Keys page of this server, or with “npm run keys”.' },
  );
}

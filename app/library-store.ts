import {
  type ErrorRecord,
  type LibraryApi,
  type LibrarySnapshot,
  toKinoraError,
} from '../lib/contract';
import type { WorkerClient, WorkerSession } from '../lib/predictions/worker-client';

type LibrarySession = WorkerSession<LibraryApi>;

/** What this page knows of the library. */
export type LibraryState =
  | { readonly status: 'loading' }
  | { readonly status: 'ready'; readonly snapshot: LibrarySnapshot }
  | { readonly status: 'failed'; readonly error: ErrorRecord };

export const loadingLibrary: LibraryState = { status: 'loading' };

/**
 * The library of this page as an external store in React's sense. Its worker starts with the first
 * listener, or the first call, and stays: downloads go on while the person is elsewhere in the app.
 */
export class LibraryStore {
  #state: LibraryState = loadingLibrary;
  #session: LibrarySession | null = null;
  readonly #listeners = new Set<() => void>();

  constructor(readonly host: WorkerClient<LibraryApi>) {}

  readonly getSnapshot = (): LibraryState => this.#state;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    this.#open();
    return () => this.#listeners.delete(listener);
  };

  /**
   * Runs one call of the worker, and rejects when the worker dies in it.
   *
   * @throws KinoraError what the call rejects with, or `INTERNAL`
   */
  async call<T>(work: (api: LibraryApi) => Promise<T>): Promise<T> {
    const { api, crashed } = this.#open();
    return Promise.race([work(api), crashed]);
  }

  /** Reads everything anew: for changes that the worker cannot see, such as a granted permission. */
  async refresh(): Promise<void> {
    const snapshot = await this.call((api) => api.snapshot());
    this.#set({ status: 'ready', snapshot });
  }

  /** Starts over after a failure. */
  restart(): void {
    this.host.close();
    this.#session = null;
    this.#set(loadingLibrary);
    this.#open();
  }

  #open(): LibrarySession {
    if (this.#session) return this.#session;
    const session = this.host.open();
    this.#session = session;
    this.#follow(session).catch((thrown: unknown) => {
      if (this.#session !== session) return;
      this.#set({ status: 'failed', error: toKinoraError(thrown).toRecord() });
    });
    return session;
  }

  async #follow({ api, crashed }: LibrarySession): Promise<void> {
    const show = (snapshot: LibrarySnapshot) => this.#set({ status: 'ready', snapshot });
    await Promise.race([api.subscribe(show), crashed]);
    await this.refresh();
    await crashed;
  }

  #set(state: LibraryState): void {
    this.#state = state;
    for (const listener of this.#listeners) listener();
  }
}

/** A value that tells its listeners of each change, as React's `useSyncExternalStore` wants it. */
export class Observable<T> {
  readonly #listeners = new Set<() => void>();
  #value: T;

  /** @param initial also what a page has that is drawn on the server */
  constructor(readonly initial: T) {
    this.#value = initial;
  }

  readonly getSnapshot = (): T => this.#value;

  readonly getServerSnapshot = (): T => this.initial;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  set(value: T): void {
    if (value === this.#value) return;
    this.#value = value;
    for (const listener of this.#listeners) listener();
  }
}

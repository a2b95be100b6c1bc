import { writeText } from './stored-text';

/**
 * A small value of this browser in `localStorage`, the same in all its tabs. It can be read at once, before
 * the first paint. {@link subscribe} and {@link getSnapshot} fit React's `useSyncExternalStore`.
 */
export class StoredValue<T> {
  #text: string | null = null;
  #value: T;

  /**
   * @param key in `localStorage`
   * @param fallback where nothing valid is stored
   * @param parse returns undefined for what is not valid
   */
  constructor(
    readonly key: string,
    readonly fallback: T,
    readonly parse: (json: unknown) => T | undefined,
  ) {
    this.#value = fallback;
  }

  readonly getSnapshot = (): T => {
    const text = this.#read();
    if (text !== this.#text) {
      this.#text = text;
      this.#value = this.#parsed(text);
    }
    return this.#value;
  };

  readonly getServerSnapshot = (): T => this.fallback;

  /** Browsers send `storage` to the other tabs; {@link set} sends it to this one. */
  readonly subscribe = (listener: () => void): (() => void) => {
    window.addEventListener('storage', listener);
    return () => window.removeEventListener('storage', listener);
  };

  readonly set = (value: T): void => {
    this.#text = JSON.stringify(value);
    this.#value = value;
    // Where the browser stores nothing, the value is kept as long as the page.
    writeText(this.key, this.#text);
    window.dispatchEvent(new StorageEvent('storage', { key: this.key, newValue: this.#text }));
  };

  #read(): string | null {
    try {
      return localStorage.getItem(this.key);
    } catch {
      // Storage is blocked.
      return this.#text;
    }
  }

  #parsed(text: string | null): T {
    try {
      return this.parse(JSON.parse(text ?? 'null')) ?? this.fallback;
    } catch {
      // Not what this version writes.
      return this.fallback;
    }
  }
}

/** Keeps read values for a while, by key, so that a busy key costs no query per request. */
export class Kept<T> {
  readonly #reads = new Map<string, { readonly value: Promise<T>; readonly at: number }>();

  /**
   * @param ms how long a read is used, in milliseconds
   * @param most keys that are kept
   */
  constructor(
    readonly ms: number,
    readonly most: number,
  ) {}

  /** The last value, where it is new enough; else what `read` gives. A read that fails is not kept. */
  get(key: string, read: () => Promise<T>): Promise<T> {
    const kept = this.#reads.get(key);
    if (kept && performance.now() - kept.at <= this.ms) return kept.value;
    if (this.#reads.size >= this.most) this.#reads.clear();
    const entry = { value: read(), at: performance.now() };
    this.#reads.set(key, entry);
    entry.value.catch(() => {
      if (this.#reads.get(key) === entry) this.#reads.delete(key);
    });
    return entry.value;
  }

  /** Forgets a key that this node has changed. */
  forget(key: string): void {
    this.#reads.delete(key);
  }
}

/** How long a count is believed, in milliseconds. */
const freshMs = 2000;
const mostKeys = 5000;

interface Known {
  count: number;
  readAt: number;
  reading: Promise<number> | null;
}

/**
 * How many unfinished predictions a key has, without a query per read: the last number known is taken
 * and renewed behind the answer's back. Only who would be refused by an old number waits for a new one.
 */
export class UnfinishedCounts {
  readonly #countOf: (keyId: string) => Promise<number>;
  readonly #known = new Map<string, Known>();

  constructor(countOf: (keyId: string) => Promise<number>) {
    this.#countOf = countOf;
  }

  /** The last number known; 0 where there is none yet. */
  latest(keyId: string): number {
    const known = this.#of(keyId);
    if (performance.now() - known.readAt > freshMs) void this.#read(keyId, known);
    return known.count;
  }

  /** A number that is at most two seconds old. */
  async current(keyId: string): Promise<number> {
    const known = this.#of(keyId);
    if (performance.now() - known.readAt <= freshMs) return known.count;
    return await this.#read(keyId, known);
  }

  #of(keyId: string): Known {
    const known = this.#known.get(keyId);
    if (known) return known;
    if (this.#known.size >= mostKeys) this.#known.clear();
    const fresh: Known = { count: 0, readAt: Number.NEGATIVE_INFINITY, reading: null };
    this.#known.set(keyId, fresh);
    return fresh;
  }

  #read(keyId: string, known: Known): Promise<number> {
    known.reading ??= this.#countOf(keyId)
      .then(
        (count) => {
          known.count = count;
        },
        // The database does not answer: the old number stands, and the caller hears of it elsewhere.
        () => undefined,
      )
      .then(() => {
        known.readAt = performance.now();
        known.reading = null;
        return known.count;
      });
    return known.reading;
  }
}

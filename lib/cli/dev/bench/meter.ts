/** How many operations there were, and how long they took. */
export interface Rate {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Takes the time of each operation while many of them run. */
export class Meter {
  readonly #startedAt = performance.now();
  readonly #times: number[] = [];

  /** Runs one operation. @param since when it was due, where that is earlier than now */
  async time(operation: () => Promise<unknown>, since = performance.now()): Promise<void> {
    await operation();
    this.#times.push(performance.now() - since);
  }

  /** Everything since this meter was made. */
  rate(): Rate {
    const count = this.#times.length;
    const seconds = (performance.now() - this.#startedAt) / 1000;
    return {
      perSecond: count / seconds,
      p50Ms: percentile(this.#times, 0.5),
      p99Ms: percentile(this.#times, 0.99),
    };
  }
}

/**
 * The value below which a share of them lies.
 *
 * @param share from 0 to 1; 0.5 gives the median
 * @returns NaN where there are no values
 */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN;
}

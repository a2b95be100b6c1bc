/** How many operations there were, and how long they took. */
export interface Rate {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Processor time of this process per operation: comparable on a machine that does other things. */
  readonly cpuMs: number;
}

/** Takes the time of each operation while many of them run. */
export class Meter {
  readonly #startedAt = performance.now();
  readonly #cpu = process.cpuUsage();
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
    const { user, system } = process.cpuUsage(this.#cpu);
    return {
      perSecond: count / seconds,
      p50Ms: percentile(this.#times, 0.5),
      p99Ms: percentile(this.#times, 0.99),
      cpuMs: (user + system) / 1000 / count,
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

/** Runs `count` operations, `concurrency` at a time. */
export async function measure(
  count: number,
  concurrency: number,
  operation: (index: number) => Promise<unknown>,
): Promise<Rate> {
  const meter = new Meter();
  let next = 0;
  const lane = async () => {
    for (let index = next++; index < count; index = next++) {
      await meter.time(() => operation(index));
    }
  };
  await Promise.all(Array.from({ length: concurrency }, lane));
  return meter.rate();
}

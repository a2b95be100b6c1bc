/** Growing waits between attempts, half of each by chance so that many workers do not come at once. */
export class Backoff {
  #failures = 0;

  /** @param random from 0 to 1, exclusive */
  constructor(
    readonly firstMs: number,
    readonly longestMs: number,
    readonly random: () => number = Math.random,
  ) {}

  /** How long to wait before the next attempt, in milliseconds; each time longer, up to the longest. */
  next(): number {
    const full = Math.min(this.longestMs, this.firstMs * 2 ** this.#failures);
    this.#failures += 1;
    return Math.round(full / 2 + (full / 2) * this.random());
  }

  /** It worked: the next wait is a short one again. */
  reset(): void {
    this.#failures = 0;
  }
}

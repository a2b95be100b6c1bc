/** How long one range should take: what a pause or a lost page throws away is a few of them. */
const aimMs = 1000;
/** Below this the requests themselves would cost more than what they bring. */
const leastBytes = 256 * 1024;
const firstBytes = 512 * 1024;

/** How large the next range of a file should be, by how long the ones before it took. */
export class RangeSize {
  #bytes: number;

  constructor(readonly mostBytes: number) {
    this.#bytes = Math.min(firstBytes, mostBytes);
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** A range of so many bytes took so long, beside the others that were in flight with it. */
  learn(bytes: number, elapsedMs: number): void {
    const fitting = elapsedMs > 0 ? (bytes * aimMs) / elapsedMs : Number.POSITIVE_INFINITY;
    // The last range of a stream may be short: it tells the speed, but is no measure for the size.
    const grown = Math.min(fitting, this.#bytes * 2);
    this.#bytes = Math.floor(Math.min(this.mostBytes, Math.max(leastBytes, grown)));
  }
}

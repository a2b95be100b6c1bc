/** Seconds of work that a device may have before it, so that it never waits for more and a cancellation not for long. */
const mostSeconds = 1;
/** Submissions; of more than a hundred that nothing waits for, drivers have lost devices. */
const mostSubmissions = 64;
/** These are submitted however long they take: one computes while the next is made. */
const always = 2;
/** Bytes that wait in the browser for their buffers: a block of the 5B and half of the next one. */
const mostWritten = 2 ** 28;

/** The submissions that a device is not known to have done. A browser may tell of their ends late and of many at once. */
export class InFlight {
  #pending: {
    readonly done: Promise<unknown>;
    readonly seconds: number;
    readonly written: number;
  }[] = [];
  /** Bytes since the last submission. */
  #written = 0;
  /** Seconds of a submission of which nothing is predicted: what the last ones took. */
  #usual = mostSeconds / 4;
  #lastEnd = 0;

  /** Notes data for a buffer: it takes memory until the next submission is done, as the queue keeps its order. */
  wrote(bytes: number): void {
    this.#written += bytes;
  }

  /**
   * Adds a submission, then waits until another may follow.
   *
   * @param done resolves when the work is done
   * @param predicted seconds; where it is absent, as long as the last ones of this kind took
   */
  async add(done: Promise<unknown>, predicted?: number): Promise<void> {
    const submission = { done, seconds: predicted ?? this.#usual, written: this.#written };
    this.#written = 0;
    const start = performance.now();
    this.#pending.push(submission);
    const end = () => {
      const now = performance.now();
      // The device has begun when the one before was done, or later.
      const seconds = (now - Math.max(start, this.#lastEnd)) / 1000;
      if (predicted === undefined) this.#usual += (seconds - this.#usual) / 4;
      this.#lastEnd = now;
      this.#pending = this.#pending.filter((each) => each !== submission);
    };
    // Those who wait for the work are told that it failed.
    done.then(end, end);
    while (this.#isFull()) await this.#pending[0]?.done;
  }

  #isFull(): boolean {
    const { length } = this.#pending;
    const seconds = this.#pending.reduce((sum, each) => sum + each.seconds, 0);
    const written = this.#pending.reduce((sum, each) => sum + each.written, 0);
    return (
      length > mostSubmissions ||
      (length > always && seconds > mostSeconds) ||
      (length > 1 && written > mostWritten)
    );
  }
}

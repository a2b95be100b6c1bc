/** Times the steps of a run. */
export class StepClock {
  readonly #seconds: number[] = [];
  #last = 0;

  /** @param now seconds; for tests */
  constructor(readonly now: () => number = () => performance.now() / 1000) {}

  /** Call before the first step of a clip. */
  start(): void {
    this.#last = this.now();
  }

  /** Call after each step. */
  step(): void {
    const now = this.now();
    this.#seconds.push(now - this.#last);
    this.#last = now;
  }

  /** Median over the run, which one slow first step does not change; 0 before the first step. */
  get secondsPerStep(): number {
    const sorted = this.#seconds.toSorted((a, b) => a - b);
    return sorted[Math.floor(sorted.length / 2)] ?? 0;
  }
}

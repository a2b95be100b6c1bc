import type { Phase, Timings } from '../contract';

/** Adds up the seconds of each phase; phases repeat with each clip. */
export class PhaseClock {
  readonly #seconds: Partial<Record<Phase, number>> = {};
  readonly #begin = performance.now();
  #phase: Phase | undefined;
  #since = this.#begin;

  enter(phase: Phase): void {
    const now = performance.now();
    if (this.#phase) {
      const before = this.#seconds[this.#phase] ?? 0;
      this.#seconds[this.#phase] = before + (now - this.#since) / 1000;
    }
    this.#phase = phase;
    this.#since = now;
  }

  stop(): Timings {
    if (this.#phase) this.enter(this.#phase);
    return { ...this.#seconds, total: (performance.now() - this.#begin) / 1000 };
  }
}

import type { Phase, Timings } from '../contract';

/** Adds up the seconds of each phase; phases repeat with each clip. */
export class PhaseClock {
  readonly #seconds: Partial<Record<Phase, number>> = {};
  #phase: Phase | undefined;
  #since = 0;

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
    const total = Object.values(this.#seconds).reduce((sum, seconds) => sum + seconds, 0);
    return { ...this.#seconds, total };
  }
}

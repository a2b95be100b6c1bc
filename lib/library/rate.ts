const windowMs = 5000;

/** Bytes per second over the last few seconds. */
export class Rate {
  #samples: { at: number; bytes: number }[] = [];

  constructor(readonly now: () => number = () => performance.now()) {}

  add(bytes: number): void {
    this.#samples.push({ at: this.now(), bytes });
    this.#forget();
  }

  /** 0 while nothing comes. */
  get bytesPerSecond(): number {
    this.#forget();
    const first = this.#samples[0];
    if (!first) return 0;
    const bytes = this.#samples.reduce((sum, sample) => sum + sample.bytes, 0);
    // One second at least: a single piece says nothing about the speed.
    return bytes / (Math.max(1000, this.now() - first.at) / 1000);
  }

  #forget(): void {
    const oldest = this.now() - windowMs;
    while ((this.#samples[0]?.at ?? oldest) < oldest) this.#samples.shift();
  }
}

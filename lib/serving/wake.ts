/** A wait that can be cut short. A ring while nobody waits ends the next wait at once. */
export class Wake {
  #rung = false;
  #resolve: () => void = () => {};

  ring(): void {
    this.#rung = true;
    this.#resolve();
  }

  /** Forgets a ring that nobody has waited for. */
  clear(): void {
    this.#rung = false;
  }

  /** Resolves with the next ring, or after the time in milliseconds; `Infinity` waits for a ring. */
  async wait(ms: number): Promise<void> {
    if (!this.#rung && ms > 0) {
      let timer: ReturnType<typeof setTimeout> | undefined;
      await new Promise<void>((resolve) => {
        this.#resolve = resolve;
        if (ms < Number.POSITIVE_INFINITY) timer = setTimeout(resolve, ms);
      });
      clearTimeout(timer);
      this.#resolve = () => {};
    }
    this.#rung = false;
  }
}

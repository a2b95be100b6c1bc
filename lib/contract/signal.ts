/** A flag that one side raises and one other side waits for. */
export class Signal {
  #raised = false;
  #wake: () => void = () => {};

  /** Ends the wait; without one, the next wait ends at once. */
  raise(): void {
    this.#raised = true;
    this.#wake();
  }

  /** Forgets that it was raised. */
  clear(): void {
    this.#raised = false;
  }

  /**
   * Waits until it is raised or the time is over, and lowers it.
   *
   * @param ms milliseconds; `Infinity` waits without a limit
   * @returns whether it was raised
   */
  async wait(ms: number): Promise<boolean> {
    if (!this.#raised && ms > 0) {
      let timer: ReturnType<typeof setTimeout> | undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        if (ms < Number.POSITIVE_INFINITY) timer = setTimeout(resolve, Math.ceil(ms));
      });
      clearTimeout(timer);
      this.#wake = () => {};
    }
    const raised = this.#raised;
    this.#raised = false;
    return raised;
  }
}

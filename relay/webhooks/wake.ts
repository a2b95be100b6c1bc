/** A sleep that a ring ends; a ring while nobody sleeps ends the next sleep at once. */
export class Wake {
  #rung = false;
  #resolve: (() => void) | null = null;

  ring(): void {
    this.#rung = true;
    this.#resolve?.();
  }

  /** Resolves after `ms`, or at a ring. */
  async wait(ms: number): Promise<void> {
    if (!this.#rung) {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        this.#resolve = resolve;
        timer = setTimeout(resolve, Math.ceil(ms));
      });
      clearTimeout(timer);
      this.#resolve = null;
    }
    this.#rung = false;
  }
}

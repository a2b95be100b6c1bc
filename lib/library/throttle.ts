const betweenMs = 250;

/** Calls back after changes: at once, then at most four times a second, the last change included. */
export class Throttle {
  #timer: ReturnType<typeof setTimeout> | undefined;
  #pending = false;

  constructor(readonly work: () => void) {}

  readonly call = (): void => {
    if (this.#timer !== undefined) {
      this.#pending = true;
      return;
    }
    this.work();
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (!this.#pending) return;
      this.#pending = false;
      this.call();
    }, betweenMs);
  };
}

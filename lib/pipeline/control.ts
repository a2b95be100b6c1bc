import { KinoraError } from '../contract';

/** Lets someone outside hold, end or abandon a running loop. */
export class RunControl {
  readonly #abort = new AbortController();
  #finish = false;
  #suspend = false;
  #resume: (() => void) | undefined;
  #paused: Promise<void> | undefined;

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get finishing(): boolean {
    return this.#finish;
  }

  /** Whether the loop is to save its state and end. */
  get suspending(): boolean {
    return this.#suspend;
  }

  /** Whether the loop is to wait. */
  get paused(): boolean {
    return this.#paused !== undefined;
  }

  pause(): void {
    this.#paused ??= new Promise((resolve) => {
      this.#resume = resolve;
    });
  }

  resume(): void {
    this.#resume?.();
    this.#paused = undefined;
    this.#resume = undefined;
  }

  /** The loop ends after its current step and what is there is decoded. */
  finishEarly(): void {
    this.#finish = true;
    this.resume();
  }

  /** The loop saves its state after the current step and rejects with `PAUSED`. */
  suspend(): void {
    this.#suspend = true;
    this.resume();
  }

  /** The loop rejects with `CANCELLED` as soon as it looks. */
  cancel(): void {
    this.#abort.abort(new KinoraError('CANCELLED'));
    this.resume();
  }

  /** Resolves at once, or when a pause ends. */
  async whenRunning(): Promise<void> {
    await this.#paused;
    this.signal.throwIfAborted();
  }
}

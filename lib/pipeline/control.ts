import { KinoraError } from '../contract';

/** Lets someone outside pause, end or abandon a running loop. */
export class RunControl {
  readonly #abort = new AbortController();
  #finish = false;
  #pause = false;

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get finishing(): boolean {
    return this.#finish;
  }

  /** Whether the loop is to save its state and end. */
  get pausing(): boolean {
    return this.#pause;
  }

  /** The loop ends after its current step and what is there is decoded. */
  finishEarly(): void {
    this.#finish = true;
  }

  /** The loop saves its state after the current step and rejects with `PAUSED`. */
  pause(): void {
    this.#pause = true;
  }

  /** The loop rejects with `CANCELLED` as soon as it looks. */
  cancel(): void {
    this.#abort.abort(new KinoraError('CANCELLED'));
  }
}

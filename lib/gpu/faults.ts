import { KinoraError } from '../contract';

/**
 * Milliseconds: events are tasks of their own, and come after the promise of the work that caused
 * them.
 */
const eventDelay = 5;

const afterEvents = () => new Promise<void>((resolve) => setTimeout(resolve, eventDelay));

/**
 * What a device reports of itself: late, by events, and often several times for one cause. A buffer
 * that could not be made is reported first; then every command that uses it is refused, and said to be.
 */
export class DeviceFaults {
  #fault: KinoraError | undefined;
  /** Whether a lack of memory was forgiven and nothing has been read since. */
  #aftermath = false;
  readonly #lost: Promise<never>;

  constructor(readonly device: GPUDevice) {
    device.onuncapturederror = ({ error }) => {
      this.#fault ??=
        error instanceof GPUOutOfMemoryError || this.#aftermath
          ? new KinoraError('OUT_OF_MEMORY')
          : new KinoraError('INTERNAL', `The GPU refused a command: ${error.message}`);
    };
    this.#lost = device.lost.then((info) => {
      this.#fault = new KinoraError('DEVICE_LOST', undefined, { cause: info.message });
      throw this.#fault;
    });
    this.#lost.catch(() => undefined);
  }

  /** The first fault that was not forgiven. */
  get current(): KinoraError | undefined {
    return this.#fault;
  }

  /** @throws the {@link current} fault */
  check(): void {
    if (this.#fault) throw this.#fault;
  }

  /** Waits for work that would never end on a lost device; then it rejects with `DEVICE_LOST`. */
  race<T>(work: Promise<T>): Promise<T> {
    return Promise.race([work, this.#lost]);
  }

  /**
   * Says whether what was just read can be relied on; if so, later faults are news again.
   *
   * @throws the {@link current} fault, events that are under way included
   */
  async confirmRead(): Promise<void> {
    await this.reported();
    this.check();
    this.#aftermath = false;
  }

  /**
   * Waits until the device has told of every fault so far. Its answers keep their order: that of an
   * empty error scope comes after all that was wrong before.
   */
  async reported(): Promise<void> {
    this.device.pushErrorScope('validation');
    await this.race(this.device.popErrorScope());
    await this.race(afterEvents());
  }

  /**
   * Forgets a lack of memory, once all that it made invalid has been reported. What is reported later
   * nonetheless, until a read has succeeded, still counts as part of it.
   *
   * @throws the {@link current} fault where it is another one
   */
  async forgive(): Promise<void> {
    // The errors of the last submits come after the promise of their end: so a round more is waited.
    for (let round = 0; round < 2; round++) {
      this.device.queue.submit([]);
      await this.race(this.device.queue.onSubmittedWorkDone());
      await this.reported();
    }
    if (!this.#fault) return;
    if (this.#fault.code !== 'OUT_OF_MEMORY') throw this.#fault;
    this.#fault = undefined;
    this.#aftermath = true;
  }
}

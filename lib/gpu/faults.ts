import { KinoraError } from '../contract';
import { handleMessages } from './messages';

/**
 * The errors of a device. It reports them late, by events, and often several times for one cause: first
 * that a buffer could not be made, then each command that uses this buffer.
 */
export class DeviceFaults {
  #fault: KinoraError | undefined;
  /** Whether a lack of memory was cleared and nothing has been read since. */
  #recovering = false;
  readonly #lost: Promise<never>;

  constructor(readonly device: GPUDevice) {
    device.onuncapturederror = ({ error }) => {
      this.#fault ??=
        error instanceof GPUOutOfMemoryError || this.#recovering
          ? new KinoraError('OUT_OF_MEMORY')
          : new KinoraError('INTERNAL', `The GPU refused a command: ${error.message}`);
    };
    this.#lost = device.lost.then((info) => {
      this.#fault = new KinoraError('DEVICE_LOST', undefined, { cause: info.message });
      throw this.#fault;
    });
    this.#lost.catch(() => undefined);
  }

  /** The first fault since the last one was cleared. */
  get current(): KinoraError | undefined {
    return this.#fault;
  }

  /** @throws the {@link current} fault */
  check(): void {
    if (this.#fault) throw this.#fault;
  }

  /** Resolves as `work` does; rejects with `DEVICE_LOST` if the device is lost, when work never ends. */
  race<T>(work: Promise<T>): Promise<T> {
    return Promise.race([work, this.#lost]);
  }

  /**
   * Why a call on the device failed, whatever it has thrown: the {@link current} fault, also one whose event has not
   * come yet. The device itself is asked: one that cannot map a new buffer is lost. After a loss each call fails in
   * another way, before or after the browser reports the loss.
   */
  async reasonOf(error: unknown): Promise<unknown> {
    if (this.#fault?.code !== 'DEVICE_LOST') {
      const probe = this.device.createBuffer({ size: 16, usage: GPUBufferUsage.MAP_READ });
      try {
        await this.race(probe.mapAsync(GPUMapMode.READ));
        await this.reported();
      } catch (cause) {
        this.#fault ??= new KinoraError('DEVICE_LOST', undefined, { cause });
      }
      probe.destroy();
    }
    return this.#fault ?? error;
  }

  /**
   * Checks that the data of a read is valid. If so, recovery from a lack of memory is complete.
   *
   * @throws the {@link current} fault, also one whose event has not come yet
   */
  async confirmRead(): Promise<void> {
    await this.reported();
    this.check();
    this.#recovering = false;
  }

  /**
   * Waits until the device has reported every fault so far. Reports keep their order, so that the result of
   * an empty error scope comes after all errors before it.
   */
  async reported(): Promise<void> {
    this.device.pushErrorScope('validation');
    await this.race(this.device.popErrorScope());
    // An error event is a task of its own.
    await this.race(handleMessages());
  }

  /**
   * Clears a lack of memory after all its consequences have been reported. Errors that still come before
   * the next successful read count as its consequences, too.
   *
   * @throws the {@link current} fault where it is another one
   */
  async clearOutOfMemory(): Promise<void> {
    // The errors of the last submits come after the promise of their end, hence the second round.
    for (let round = 0; round < 2; round++) {
      this.device.queue.submit([]);
      await this.race(this.device.queue.onSubmittedWorkDone());
      await this.reported();
    }
    if (!this.#fault) return;
    if (this.#fault.code !== 'OUT_OF_MEMORY') throw this.#fault;
    this.#fault = undefined;
    this.#recovering = true;
  }
}

/** The error for what exceeds the 4 GiB of WebAssembly, or the browser's memory. */
export function cannotHold(what: string, cause: unknown): KinoraError {
  return new KinoraError('OUT_OF_MEMORY', `The CPU backend cannot hold ${what}.`, {
    cause,
    remedy: 'Make a smaller or shorter video, or use the GPU.',
  });
}

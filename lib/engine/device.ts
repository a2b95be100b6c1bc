import {
  type Backend as BackendKind,
  type EngineCounters,
  type KernelSetting,
  toKinoraError,
} from '../contract';
import { type Backend, createBackend, createTestedBackend, requireUsable } from '../gpu';

/** The one backend of an engine. */
export class EngineDevice {
  /** A promise, since two callers must not make two devices. */
  #backend: Promise<Backend> | undefined;
  #kind: BackendKind | undefined;
  #matrices = false;

  /**
   * The backend of this kind. One of another kind, or whose device was lost, is disposed first; so is one that was not
   * opened for the kernels that are asked for.
   *
   * @param kernels whatever the device was opened for when absent
   */
  async open(kind: BackendKind, kernels?: KernelSetting): Promise<Backend> {
    const current = await this.#current();
    const matrices = kernels ? kernels === 'matrix' : this.#matrices;
    const other = this.#kind !== kind || this.#matrices !== matrices;
    if (current && (other || current.lost)) await this.drop();
    if (!this.#backend) {
      this.#kind = kind;
      this.#matrices = matrices;
      this.#backend = openTested(kind, matrices);
      // The next call tries again.
      this.#backend.catch(() => {
        this.#backend = undefined;
      });
    }
    return this.#backend;
  }

  /**
   * Why work failed: its device is asked, whatever it has thrown. Of a GPU that is lost, the encoder may be the
   * first to notice.
   */
  async reasonOf(thrown: unknown): Promise<unknown> {
    const fault = await (await this.#current())?.settle().then(() => null, toKinoraError);
    return fault?.code === 'DEVICE_LOST' ? fault : thrown;
  }

  /** Frees what is left; a device that is lost meanwhile is replaced by the next run. */
  async tidy(work: (backend: Backend) => Promise<void>): Promise<void> {
    const backend = await this.#current();
    if (backend) await work(backend).catch(() => undefined);
  }

  async drop(): Promise<void> {
    const backend = await this.#current();
    this.#backend = undefined;
    // A lost device cannot be disposed of.
    await backend?.dispose().catch(() => undefined);
  }

  async counters(): Promise<EngineCounters> {
    const nothing = {
      categories: {},
      liveBytes: 0,
      peakBytes: 0,
      allocations: 0,
      readbacks: 0,
      waits: 0,
    };
    return (await this.#current())?.counters() ?? nothing;
  }

  async #current(): Promise<Backend | undefined> {
    // The caller that opened it has received the error.
    return this.#backend?.catch(() => undefined);
  }
}

/** @throws KinoraError `GPU_UNRELIABLE`; then nothing stays allocated */
async function openTested(kind: BackendKind, matrices: boolean): Promise<Backend> {
  if (kind === 'wasm') return createBackend(kind);
  const { backend, checks } = await createTestedBackend({ matrices });
  try {
    requireUsable(checks);
    return backend;
  } catch (error) {
    // The failed check is the reason that counts.
    await backend.dispose().catch(() => undefined);
    throw error;
  }
}

import {
  type Backend as BackendKind,
  type EngineCounters,
  toKinoraError,
} from '../../lib/contract';
import { type Backend, createBackend, probeDevice, requireUsable, selfTest } from '../../lib/gpu';

/** The one backend of an engine. */
export class EngineDevice {
  /** A promise, since two callers must not make two devices. */
  #backend: Promise<Backend> | undefined;
  #kind: BackendKind | undefined;

  /** The backend of this kind. One of another kind, or whose device was lost, is disposed first. */
  async open(kind: BackendKind): Promise<Backend> {
    const current = await this.#current();
    if (current && (this.#kind !== kind || current.lost)) await this.drop();
    if (!this.#backend) {
      this.#kind = kind;
      this.#backend = openTested(kind);
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
    await backend?.dispose().catch(() => undefined);
  }

  async counters(): Promise<EngineCounters> {
    const nothing = { categories: {}, liveBytes: 0, allocations: 0, readbacks: 0 };
    return (await this.#current())?.counters() ?? nothing;
  }

  async #current(): Promise<Backend | undefined> {
    return this.#backend?.catch(() => undefined);
  }
}

/**
 * Makes a backend and asks a real GPU for its numbers before anything is computed on it. An emulated
 * GPU computes with the CPU's own arithmetic, and would take seconds to compile the test.
 *
 * @throws KinoraError `GPU_UNRELIABLE`; then nothing stays allocated
 */
async function openTested(kind: BackendKind): Promise<Backend> {
  const backend = await createBackend(kind);
  try {
    if (kind === 'webgpu' && !(await probeDevice()).software)
      requireUsable(await selfTest(backend));
    return backend;
  } catch (error) {
    await backend.dispose().catch(() => undefined);
    throw error;
  }
}

import { type Continuation, KinoraError, Observable, type Prediction } from '../contract';
import { predictionLock } from './locks';
import { advanceRun, idle, type RunEvent, type RunState } from './run-state';

/**
 * How long a run waits for the lock of its prediction, in milliseconds. A sweep, or the record of an interruption,
 * holds it for a moment, just when the page shows that the run can be resumed.
 */
const lockWaitMs = 3000;

/** A run whose row exists. */
export interface StartedRun {
  readonly id: string;
  /** Resolves with the row at the end of the run: completed, interrupted or failed. */
  readonly ended: Promise<Prediction>;
}

/** The one run of this tab: its state, and the lock of its prediction. */
export class CurrentRun extends Observable<RunState> {
  #abort = new AbortController();

  /** @param afterwards runs when the lock is released, and before the run has ended; its errors are ignored */
  constructor(private readonly afterwards: () => Promise<void>) {
    super(idle);
  }

  /**
   * Begins a run. Resolves when `work` calls `onStarted`, and rejects if it throws before.
   *
   * @param work runs with the lock of the prediction
   * @param waits whether a lock that is held is waited for
   * @throws KinoraError `BUSY` while there is a run, or where another tab goes on holding the lock
   */
  async begin(
    prediction: Prediction,
    continuation: Continuation | null,
    work: (signal: AbortSignal, onStarted: () => void) => Promise<Prediction>,
    waits = true,
  ): Promise<StartedRun> {
    const { id } = prediction;
    if (this.getSnapshot().status !== 'idle') throw new KinoraError('BUSY');
    this.#abort = new AbortController();
    const { signal } = this.#abort;
    this.apply({ type: 'created', prediction, continuation });
    return new Promise((resolve, reject) => {
      const locked = () => work(signal, () => resolve({ id, ended }));
      const ended = this.#locked(id, locked, waits);
      ended.catch(reject);
    });
  }

  /** Ends the run with `CANCELLED`. */
  cancel(): void {
    this.apply({ type: 'ending', how: 'cancel' });
    this.#abort.abort();
  }

  async #locked<T>(id: string, work: () => Promise<T>, waits: boolean): Promise<T> {
    const signal = AbortSignal.timeout(lockWaitMs);
    let acquired = false;
    try {
      const options = waits ? { signal } : { ifAvailable: true };
      return await navigator.locks.request(predictionLock(id), options, (lock) => {
        if (!lock) throw inUse();
        acquired = true;
        return work();
      });
    } catch (thrown) {
      throw signal.aborted && !acquired ? inUse() : thrown;
    } finally {
      // The run has its result; what follows it must not change that.
      await this.afterwards().catch(() => {});
      this.apply({ type: 'ended' });
    }
  }

  apply(event: RunEvent): void {
    this.set(advanceRun(this.getSnapshot(), event));
  }
}

/** The error while another tab has the lock of a prediction, or has changed it. */
export function inUse(): KinoraError {
  return new KinoraError('BUSY', 'Another tab is working on this video.');
}

import type { EngineApi, EngineRequest } from '../contract/engine';
import { isDeviceFault, KinoraError, toKinoraError } from '../contract/errors';
import type { GenerationResult, ProgressEvent } from '../contract/progress';

/** A running engine worker. */
export interface EngineSession {
  readonly api: EngineApi;
  /** Rejects when the worker dies; never resolves. */
  readonly crashed: Promise<never>;
}

/** Where the engine comes from. */
export interface EngineHost {
  /** The running engine; starts one where there is none. */
  open(): EngineSession;
  /** Ends the engine with all it holds; the next {@link open} starts a fresh one. */
  close(): void;
}

/** How long a cancelled engine may take to stop by itself, in milliseconds. */
const patienceMs = 15_000;

/**
 * Makes one video. An abort cancels the engine; one that does not stop in time is ended, and so is
 * one that failed in a way after which it cannot be trusted.
 *
 * @throws KinoraError what the engine rejects with, `CANCELLED` after an abort, `INTERNAL` when its
 * worker dies
 */
export async function runEngine(
  host: EngineHost,
  request: EngineRequest,
  signal: AbortSignal,
  onProgress: (event: ProgressEvent) => void,
): Promise<GenerationResult> {
  if (signal.aborted) throw new KinoraError('CANCELLED');
  const { api, crashed } = host.open();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let onAbort = () => {};
  const stuck = new Promise<never>((_, reject) => {
    onAbort = () => {
      // A refusal to cancel means that the run has just ended by itself.
      api.cancel().catch(() => {});
      timer = setTimeout(() => {
        host.close();
        reject(new KinoraError('CANCELLED'));
      }, patienceMs);
    };
    signal.addEventListener('abort', onAbort);
  });
  try {
    return await Promise.race([api.generate(request, onProgress), crashed, stuck]);
  } catch (thrown) {
    const error = signal.aborted ? new KinoraError('CANCELLED') : toKinoraError(thrown);
    if (isDeviceFault(error.code)) host.close();
    throw error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  }
}

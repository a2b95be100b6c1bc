import {
  type EngineApi,
  type EngineRequest,
  type GenerationResult,
  isDeviceFault,
  KinoraError,
  type ProgressEvent,
  toKinoraError,
} from '../contract';
import type { WorkerClient } from './worker-client';

/** Starts and ends the engine worker. */
export type EngineClient = WorkerClient<EngineApi>;

/** Time limit for a cancelled engine to stop by itself, in milliseconds. */
const cancelTimeoutMs = 15_000;

/**
 * Computes one video, as {@link withEngine} does.
 *
 * A run whose GPU was lost goes on by itself from its newest saved state, in a new worker and on a new device,
 * which it waits for. It ends where the GPU is lost again before one more step is finished.
 *
 * @param onReplaced called with an engine that has just taken the place of one that lost the GPU: it has not
 *   heard what that one was asked for
 * @throws KinoraError of the engine, `CANCELLED` after an abort, `INTERNAL` when the worker crashes
 */
export async function runEngine(
  client: EngineClient,
  request: EngineRequest,
  signal: AbortSignal,
  onProgress: (event: ProgressEvent) => void,
  onReplaced: (api: EngineApi) => void = () => undefined,
): Promise<GenerationResult> {
  let current = request;
  /** Finished steps, counted over all clips, and where the GPU was lost last. */
  let [steps, lostAt] = [0, -1];
  const report = (event: ProgressEvent) => {
    if (event.type === 'step') steps = Math.max(steps, event.clip * event.steps + event.step);
    if (event.type === 'checkpoint') {
      const { checkpoint } = event;
      current = { ...current, continuation: current.continuation ?? 'resume', checkpoint };
    }
    onProgress(event);
  };
  for (;;) {
    try {
      return await withEngine(client, signal, (api) => {
        const result = api.generate(current, report);
        if (lostAt >= 0) onReplaced(api);
        return result;
      });
    } catch (thrown) {
      const { code } = toKinoraError(thrown);
      const lost = code === 'DEVICE_LOST' || (code === 'ADAPTER_MISSING' && lostAt >= 0);
      if (!lost) throw thrown;
      if (steps <= lostAt) {
        const sentence = 'The GPU was lost twice, and no step was finished in between.';
        throw new KinoraError('DEVICE_LOST', sentence, { remedy: lostRemedy, cause: thrown });
      }
      lostAt = steps;
      await untilAdapter(client, signal);
    }
  }
}

const lostRemedy = 'Restart the browser and resume it, or choose the CPU backend.';

/** How long a browser may take to start its GPU process again, in milliseconds. */
const adapterTimeoutMs = 30_000;

/**
 * Waits until the browser offers a GPU again.
 *
 * @throws KinoraError `DEVICE_LOST` where it does not, `CANCELLED` after an abort
 */
async function untilAdapter(client: EngineClient, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + adapterTimeoutMs;
  for (let waitMs = 250; ; waitMs = Math.min(2 * waitMs, 2000)) {
    const { outcome } = await withEngine(client, signal, (api) => api.probe());
    if (outcome === 'ready') return;
    if (performance.now() + waitMs > deadline) {
      const sentence = 'The GPU was lost, and the browser has not offered one again for 30 s.';
      throw new KinoraError('DEVICE_LOST', sentence, { remedy: lostRemedy });
    }
    await new Promise((resolve) => setTimeout(resolve, waitMs));
  }
}

/**
 * Asks the engine for something. An abort cancels it; if it does not stop within 15 s its worker is terminated, as it
 * is after a device fault.
 *
 * @throws KinoraError as {@link runEngine}
 */
export async function withEngine<T>(
  client: EngineClient,
  signal: AbortSignal,
  work: (api: EngineApi) => Promise<T>,
): Promise<T> {
  if (signal.aborted) throw new KinoraError('CANCELLED');
  const { api, crashed } = client.open();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let onAbort = () => {};
  const timedOut = new Promise<never>((_, reject) => {
    onAbort = () => {
      // `cancel` rejects if the run has just ended by itself.
      api.cancel().catch(() => {});
      timer = setTimeout(() => {
        client.close();
        reject(new KinoraError('CANCELLED'));
      }, cancelTimeoutMs);
    };
    signal.addEventListener('abort', onAbort);
  });
  try {
    return await Promise.race([work(api), crashed, timedOut]);
  } catch (thrown) {
    const error = signal.aborted ? new KinoraError('CANCELLED') : toKinoraError(thrown);
    if (isDeviceFault(error.code)) client.close();
    throw error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  }
}

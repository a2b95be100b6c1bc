/** Held by the tab that works on a prediction, from before its row exists until it has ended. */
export function predictionLock(id: string): string {
  return `kinora:prediction:${id}`;
}

/** Held by the one tab that generates. */
export const gpuLock = 'kinora:gpu';

/**
 * Runs `work` as the one generation of this browser.
 *
 * @param onQueued called when another tab owns the GPU, before the wait for it begins
 * @param signal ends the wait; the promise then rejects with an `AbortError`
 */
export async function withGpu<T>(
  work: () => Promise<T>,
  onQueued: () => void,
  signal: AbortSignal,
): Promise<T> {
  signal.throwIfAborted();
  const taken = await navigator.locks.request(gpuLock, { ifAvailable: true }, async (lock) =>
    lock ? { value: await work() } : null,
  );
  if (taken) return taken.value;
  onQueued();
  return navigator.locks.request(gpuLock, { signal }, work);
}

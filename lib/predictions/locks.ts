/**
 * Web Lock that a tab holds while it works on a prediction, from before its row exists until it ends, or while a
 * person edits one that waits.
 */
export function predictionLock(id: string): string {
  return `kinora:prediction:${id}`;
}

/** Runs `work` while holding a prediction's lock; returns false if another holder has it. */
export function ifUnlocked(id: string, work: () => Promise<void>): Promise<boolean> {
  return navigator.locks.request(predictionLock(id), { ifAvailable: true }, async (lock) => {
    if (!lock) return false;
    await work();
    return true;
  });
}

/** Web Lock of the one tab that generates. */
export const gpuLock = 'kinora:gpu';

/**
 * Runs `work` while this tab holds the GPU lock.
 *
 * @param onQueued called before waiting, if another tab holds the lock
 * @param signal ends the wait; the promise then rejects with an `AbortError`
 */
export async function withGpu<T>(
  work: () => Promise<T>,
  onQueued: () => void,
  signal: AbortSignal,
): Promise<T> {
  signal.throwIfAborted();
  const acquired = await navigator.locks.request(gpuLock, { ifAvailable: true }, async (lock) =>
    lock ? { value: await work() } : null,
  );
  if (acquired) return acquired.value;
  onQueued();
  return navigator.locks.request(gpuLock, { signal }, work);
}

/**
 * Keeps the screen on until the signal: a sleeping machine computes nothing. A page that was hidden
 * has lost its wake lock and asks again when it is seen.
 */
export function keepAwake(signal: AbortSignal): void {
  if (!('wakeLock' in navigator)) return;
  let lock: WakeLockSentinel | null = null;
  const request = async () => {
    if (document.visibilityState !== 'visible' || signal.aborted) return;
    try {
      lock = await navigator.wakeLock.request('screen');
      if (signal.aborted) await lock.release();
    } catch {
      // Low battery or a policy; the work goes on without it.
    }
  };
  void request();
  document.addEventListener('visibilitychange', request, { signal });
  signal.addEventListener('abort', () => void lock?.release());
}

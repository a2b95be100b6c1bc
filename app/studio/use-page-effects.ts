import { useEffect } from 'react';
import type { RunState } from '../../lib/predictions/run-state';
import { percentDone } from './percent';

/** Shows the progress in the tab's title. */
export function useTitle(run: RunState): void {
  const percent = run.status === 'running' ? percentDone(run.progress) : null;
  const title =
    run.status === 'idle' ? 'Kinora' : `${percent === null ? '…' : `${percent}%`} · Kinora`;
  useEffect(() => {
    document.title = title;
  }, [title]);
}

/** Keeps the screen on while `active`: a sleeping machine computes nothing. */
export function useWakeLock(active: boolean): void {
  useEffect(() => {
    if (!active || !('wakeLock' in navigator)) return;
    let lock: WakeLockSentinel | null = null;
    let over = false;
    const request = async () => {
      if (document.visibilityState !== 'visible') return;
      try {
        lock = await navigator.wakeLock.request('screen');
        if (over) await lock.release();
      } catch {
        // Low battery or a policy; the run goes on without it.
      }
    };
    void request();
    // A hidden page loses its lock.
    document.addEventListener('visibilitychange', request);
    return () => {
      over = true;
      document.removeEventListener('visibilitychange', request);
      void lock?.release();
    };
  }, [active]);
}

/** Asks before a running generation is closed away. */
export function useLeaveWarning(active: boolean): void {
  useEffect(() => {
    if (!active) return;
    const warn = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener('beforeunload', warn);
    return () => window.removeEventListener('beforeunload', warn);
  }, [active]);
}

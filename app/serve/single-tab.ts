import { KinoraError } from '../../lib/contract';

/** Web Lock of the tab that serves, and where it notes who it is for the others. */
const servingLock = 'kinora:serving';
const holderKey = 'kinora:serving-tab';

/**
 * Acquires the serving lock of this browser and holds it until `signal` aborts. Browsers do not freeze a
 * hidden tab that holds a Web Lock.
 *
 * @throws KinoraError `BUSY`, with the name of the tab that holds the lock
 */
export async function acquireServingLock(name: string, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    navigator.locks
      .request(servingLock, { ifAvailable: true }, async (lock) => {
        if (!lock) throw inUse();
        const since = new Date().toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
        noteHolder(`, as “${name}” since ${since}`);
        resolve();
        await new Promise<void>((end) => {
          if (signal.aborted) end();
          signal.addEventListener('abort', () => end());
        });
      })
      .catch(reject);
  });
}

/** A browser that stores nothing says only that there is another tab. */
function noteHolder(text: string): void {
  try {
    localStorage.setItem(holderKey, text);
  } catch {
    // The other tabs have no name for this one then.
  }
}

function inUse(): KinoraError {
  let holder = '';
  try {
    holder = localStorage.getItem(holderKey) ?? '';
  } catch {
    // Storage is blocked.
  }
  return new KinoraError('BUSY', `Another tab of this browser already serves${holder}.`, {
    remedy: 'Use that tab, or disconnect it first: both would use the same GPU.',
  });
}

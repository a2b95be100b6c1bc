import { KinoraError } from '../contract/errors';
import { predictionLock } from './locks';
import { isTerminal } from './prediction-state';
import type { PredictionStore } from './store';
import { isServedVideo, listVideos, ownerOf, removeVideo } from './videos';

/**
 * Deletes videos without a row (unfinished files too) and completed rows without a video. Skips
 * predictions that a tab is working on, and videos of API jobs, which never have a row.
 */
export async function sweep(store: PredictionStore): Promise<void> {
  for (const file of await listVideos()) {
    if (isServedVideo(file)) continue;
    await ifUnlocked(ownerOf(file), async () => {
      if ((await store.videoOf(ownerOf(file))) !== file) await removeVideo(file);
    });
  }
  // Rows are listed before files: a video that another tab completes now has no row in this list.
  const rows = await store.list();
  const files = new Set(await listVideos());
  for (const row of rows) {
    if (row.status === 'completed' && !files.has(row.result.videoFile)) {
      await store.deleteRow(row.id);
    }
  }
}

/**
 * Marks predictions as failed with `INTERRUPTED` if their page was closed or reloaded. A prediction that
 * another tab is working on is watched, and marked if that tab goes away before it ends.
 *
 * @returns how many predictions were marked, without the watched ones
 */
export async function recoverInterrupted(store: PredictionStore): Promise<number> {
  const interrupt = async (id: string): Promise<boolean> => {
    const row = await store.get(id);
    if (!row || isTerminal(row)) return false;
    const error = new KinoraError('INTERRUPTED').toRecord();
    await store.dispatch(id, { type: 'failed', at: new Date().toISOString(), error });
    return true;
  };
  let count = 0;
  for (const { id } of await store.unfinished()) {
    const unlocked = await ifUnlocked(id, async () => {
      if (await interrupt(id)) count += 1;
    });
    // This request is granted when the other tab releases the lock: the row has ended, or the tab is gone.
    if (!unlocked) {
      navigator.locks.request(predictionLock(id), () => interrupt(id)).catch(() => {});
    }
  }
  return count;
}

/** Runs `work` while holding a prediction's lock; returns false if another holder has it. */
function ifUnlocked(id: string, work: () => Promise<void>): Promise<boolean> {
  return navigator.locks.request(predictionLock(id), { ifAvailable: true }, async (lock) => {
    if (!lock) return false;
    await work();
    return true;
  });
}

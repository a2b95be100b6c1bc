import { KinoraError } from '../contract/errors';
import { ifUnlocked, predictionLock } from './locks';
import { isAtRest } from './prediction-state';
import type { PredictionStore } from './store';
import { isServedVideo, listVideos, ownerOf, removeVideo } from './videos';

/**
 * Deletes videos without a row (unfinished files too) and completed rows without a video. Skips
 * predictions that a tab is working on, and videos of API jobs, which never have a row.
 */
export async function sweep(store: PredictionStore): Promise<void> {
  const videos = (await listVideos()).filter((file) => !isServedVideo(file));
  const rows = await store.list();
  const used = new Set(rows.map((row) => row.status === 'completed' && row.result.videoFile));
  // Each of these lists all files again, so videos that have their row are left out.
  const unused = videos.filter((file) => !used.has(file));
  for (const id of new Set(unused.map(ownerOf))) {
    await ifUnlocked(id, () => removeUnusedVideos(store, id));
  }
  // Rows are listed before files: a video that another tab completes now has no row in this list.
  const files = new Set(await listVideos());
  for (const row of rows) {
    if (row.status === 'completed' && !files.has(row.result.videoFile)) {
      await store.deleteRow(row.id);
    }
  }
}

/** Deletes the videos of a prediction that its row does not refer to. */
export async function removeUnusedVideos(store: PredictionStore, id: string): Promise<void> {
  const row = await store.getAnywhere(id);
  const used = row?.status === 'completed' ? row.result.videoFile : null;
  for (const file of await listVideos()) {
    if (ownerOf(file) === id && file !== used) await removeVideo(file);
  }
}

/**
 * Ends predictions whose page was closed or reloaded with `INTERRUPTED`: those with a checkpoint can be
 * resumed, the others have failed. A prediction that another tab is working on is watched, and ended if
 * that tab goes away before it ends.
 *
 * @returns how many predictions were ended, without the watched ones
 */
export async function recoverInterrupted(store: PredictionStore): Promise<number> {
  const interrupt = async (id: string): Promise<boolean> => {
    const row = await store.get(id);
    if (!row || isAtRest(row)) return false;
    const error = new KinoraError('INTERRUPTED').toRecord();
    await store.note(id, { type: 'interrupted', at: new Date().toISOString(), error });
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

import { liveQuery } from 'dexie';
import { KinoraError } from '../contract';
import { ifUnlocked, predictionLock } from './locks';
import type { PredictionStore } from './store';
import { isServed, listVideos, ownerOf, removeVideo } from './videos';

/**
 * Deletes videos without a row (unfinished files too) and completed rows without a video. Skips
 * predictions that a tab is working on, and videos of API jobs, which never have a row.
 */
export async function sweep(store: PredictionStore): Promise<void> {
  const videos = (await listVideos()).filter((file) => !isServed(file));
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
 * resumed, the others have failed. {@link watchRuns} does it for those that another tab is working on.
 *
 * @returns how many predictions were ended
 */
export async function recoverInterrupted(store: PredictionStore): Promise<number> {
  let count = 0;
  for (const { id } of await store.working()) {
    await ifUnlocked(id, async () => {
      if (await interrupt(store, id)) count += 1;
    });
  }
  return count;
}

/**
 * Ends the runs of other tabs as {@link recoverInterrupted} does, at the moment when such a tab is gone: a run
 * holds the lock of its prediction, so that a request for this lock is granted when it has ended, or its tab has.
 *
 * @param isOwn whether this tab works on a prediction
 * @returns a function that ends this for runs that begin later
 */
export function watchRuns(store: PredictionStore, isOwn: (id: string) => boolean): () => void {
  const watched = new Set<string>();
  const watch = async (id: string) => {
    watched.add(id);
    try {
      await navigator.locks.request(predictionLock(id), () => interrupt(store, id));
    } finally {
      watched.delete(id);
    }
  };
  const subscription = liveQuery(() => store.working()).subscribe({
    next(rows) {
      for (const { id } of rows) {
        // A row that cannot be read or written now is ended when a page is opened.
        if (!isOwn(id) && !watched.has(id)) watch(id).catch(() => {});
      }
    },
    // The studio shows why the database cannot be read.
    error() {},
  });
  return () => subscription.unsubscribe();
}

/** Ends a prediction that no tab works on any more; the caller holds its lock. @returns whether it had not ended */
async function interrupt(store: PredictionStore, id: string): Promise<boolean> {
  const row = await store.get(id);
  if (row?.status !== 'processing') return false;
  const error = new KinoraError('INTERRUPTED').toRecord();
  await store.note(id, { type: 'interrupted', at: new Date().toISOString(), error });
  return true;
}

import { KinoraError } from '../contract/errors';
import { predictionLock } from './locks';
import { isTerminal } from './machine';
import type { PredictionStore } from './store';
import { isServedVideo, listVideos, ownerOf, removeVideo } from './videos';

/**
 * Makes rows and files agree: removes videos that no row points to (half-written ones too), and
 * completed rows whose video is gone. What a tab is still working on is left alone, and so are the
 * videos of served jobs, which wait for their upload and never have a row.
 */
export async function sweep(store: PredictionStore): Promise<void> {
  for (const file of await listVideos()) {
    if (isServedVideo(file)) continue;
    await ifUnowned(ownerOf(file), async () => {
      if ((await store.videoOf(ownerOf(file))) !== file) await removeVideo(file);
    });
  }
  // Rows first: a video that another tab completes from here on has no row in this list.
  const rows = await store.list();
  const files = new Set(await listVideos());
  for (const row of rows) {
    if (row.status === 'completed' && !files.has(row.result.videoFile)) await store.forget(row.id);
  }
}

/**
 * Marks predictions whose page was closed or reloaded as failed with `INTERRUPTED`; returns how many
 * were found at once. Those that another tab works on are watched: should that tab vanish, they fail
 * then.
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
    const owned = !(await ifUnowned(id, async () => {
      if (await interrupt(id)) count += 1;
    }));
    // The request waits until the owner lets go; then the row has ended, or its tab is gone.
    if (owned) navigator.locks.request(predictionLock(id), () => interrupt(id)).catch(() => {});
  }
  return count;
}

/** Runs `work` while holding a prediction's lock; false where another holder has it. */
function ifUnowned(id: string, work: () => Promise<void>): Promise<boolean> {
  return navigator.locks.request(predictionLock(id), { ifAvailable: true }, async (lock) => {
    if (!lock) return false;
    await work();
    return true;
  });
}

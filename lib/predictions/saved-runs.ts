import type { Prediction } from '../contract';
import { ifUnlocked } from './locks';
import { isAtRest } from './prediction-state';
import { endFile, listRuns, openRunFiles, removeRun } from './run-files';
import type { PredictionStore } from './store';
import { isServed } from './videos';

/**
 * Limit of the latents of finished videos that are kept, in bytes: all for "Refine", 21 MB for 5 s of Wan2.2-TI2V-5B, and
 * the last ones for "Make it longer", 3.4 MB.
 */
export const keptLatentsLimit = 1_000_000_000;

/** Bytes of saved runs in this browser. */
export interface SavedRunBytes {
  /** Latents of finished videos, kept for "Refine" and "Make it longer". */
  readonly latents: number;
  /** State of interrupted runs. */
  readonly interrupted: number;
}

/** Whether a prediction is a video of the tiny decoder, which the full decoder improves. */
export function isRefinable(prediction: Prediction): boolean {
  return prediction.status === 'completed' && prediction.result.applied?.decoder === 'tiny';
}

/** Whether the latents of a finished video are still here. */
export async function hasLatents(id: string): Promise<boolean> {
  return (await listRuns()).some((run) => run.id === id && run.latents);
}

/** The end of a finished video, its last latents; null where it is not kept. */
export function endOf(id: string): Promise<Blob | null> {
  return openRunFiles(id).read(endFile);
}

/**
 * Deletes the files of saved runs that no prediction needs: those without a row, of failed runs, and the oldest latents of
 * finished videos beyond the limit. Skips predictions that a
 * tab is working on, and API jobs.
 */
export async function sweepRuns(store: PredictionStore, limit = keptLatentsLimit): Promise<void> {
  const newestFirst = (await listRuns()).sort((a, b) => b.lastModified - a.lastModified);
  let kept = 0;
  for (const { id, bytes } of newestFirst) {
    if (isServed(id)) continue;
    await ifUnlocked(id, async () => {
      const row = await store.getAnywhere(id);
      if (row?.status === 'completed') {
        kept += bytes;
        if (kept <= limit) return;
      } else if (row && (row.status === 'interrupted' || !isAtRest(row))) return;
      await removeRun(id);
    });
  }
}

/** How much storage saved runs take. */
export async function savedRunBytes(store: PredictionStore): Promise<SavedRunBytes> {
  let [latents, interrupted] = [0, 0];
  for (const { id, bytes } of await listRuns()) {
    const row = await store.get(id);
    if (row?.status === 'completed') latents += bytes;
    else if (row?.status === 'interrupted') interrupted += bytes;
  }
  return { latents, interrupted };
}

import type { Prediction } from '../contract/prediction';
import { ifUnlocked } from './locks';
import { isAtRest } from './prediction-state';
import { isServedRun, listRuns, removeRun } from './run-files';
import type { PredictionStore } from './store';

/**
 * Limit of the latents of finished videos that are kept for "Refine", in bytes; those of 5 s of
 * Wan2.2-TI2V-5B are 21 MB.
 */
export const keptLatentsLimit = 1_000_000_000;

/** Bytes of saved runs in this browser. */
export interface SavedRunBytes {
  /** Latents of finished videos, kept for "Refine". */
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

/**
 * Deletes the files of saved runs that no prediction needs: those without a row, of failed runs, of
 * finished videos that cannot be refined, and the oldest latents beyond the limit. Skips predictions that a
 * tab is working on, and API jobs.
 */
export async function sweepRuns(store: PredictionStore, limit = keptLatentsLimit): Promise<void> {
  const newestFirst = (await listRuns()).sort((a, b) => b.lastModified - a.lastModified);
  let kept = 0;
  for (const { id, bytes } of newestFirst) {
    if (isServedRun(id)) continue;
    await ifUnlocked(id, async () => {
      const row = await store.getAnywhere(id);
      if (row && isRefinable(row)) {
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
    if (row && isRefinable(row)) latents += bytes;
    else if (row?.status === 'interrupted') interrupted += bytes;
  }
  return { latents, interrupted };
}

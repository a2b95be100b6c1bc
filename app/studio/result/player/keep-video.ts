import type { Completed, Finishing } from '../../../../lib/contract';
import { predictionLock } from '../../../../lib/predictions/locks';
import { newPredictionId, type SourceFiles } from '../../../../lib/predictions/run-input';
import type { PredictionStore } from '../../../../lib/predictions/store';
import { removeVideo, writeVideo } from '../../../../lib/predictions/videos';
import type { UsedPart } from './cut-parts';

/** What a video was made of, and how. */
export interface MadeOf {
  /** In order. */
  readonly used: readonly UsedPart[];
  /** What was done to its frames. */
  readonly finishing?: Finishing;
  /** Whether its frames were not encoded again. */
  readonly copied: boolean;
}

/**
 * Keeps a video that was made of others as a prediction of its own, with the settings and the start image of
 * its first part, and the least favourable verdict of all. The videos that it was made of stay as they are.
 *
 * @returns its id
 * @throws KinoraError `STORAGE_FULL`, `VIDEO_UNREADABLE`
 */
export async function keepVideo(
  store: PredictionStore,
  file: Blob,
  { used, finishing, copied }: MadeOf,
): Promise<string> {
  const { inspectVideo } = await import('../../../../lib/video/inspect');
  const { width, height, frames, frameRate } = await inspectVideo(file);
  const [first] = used.map(({ row }) => row);
  if (!first) throw new TypeError('A video of no parts.');
  const { model, profile, backend, options } = first;
  const source = await store.source(first.id);
  const id = newPredictionId();
  const now = new Date().toISOString();
  const { safety: _, ...firstResult } = first.result;
  const safety = worstVerdict(used);
  const row: Completed = {
    id,
    model,
    profile,
    backend,
    parameters: { ...first.parameters, ...finishing },
    options,
    createdAt: now,
    status: 'completed',
    completedAt: now,
    result: {
      ...firstResult,
      ...(safety && { safety }),
      videoFile: `${id}.mp4`,
      videoBytes: file.size,
      width,
      height,
      frames,
      frameRate,
      encoder: copied ? firstResult.encoder : 'webcodecs',
      timings: { total: used.reduce((sum, part) => sum + part.row.result.timings.total, 0) },
    },
    parts: used.map(({ row: { id: partId, parameters, result }, from, to }) => ({
      id: partId,
      prompt: parameters.prompt,
      seed: result.seed,
      from,
      to,
    })),
  };
  await storeVideo(store, row, file, source ?? null);
  return id;
}

/** Writes a video and its row: both, or none. @throws KinoraError `STORAGE_FULL` */
export async function storeVideo(
  store: PredictionStore,
  row: Completed,
  file: Blob,
  source: SourceFiles | null,
): Promise<void> {
  // A page that is opened now would delete a video without a row.
  await navigator.locks.request(predictionLock(row.id), async () => {
    await writeVideo(row.result.videoFile, file);
    try {
      await store.create(row, source);
    } catch (thrown) {
      await removeVideo(row.result.videoFile);
      throw thrown;
    }
  });
}

function worstVerdict(used: readonly UsedPart[]): Completed['result']['safety'] {
  const severity = ['clear', 'off', 'unverified', 'flagged'] as const;
  const rank = ({ row }: UsedPart) => severity.indexOf(row.result.safety?.status ?? 'off');
  return used.reduce((a, b) => (rank(b) > rank(a) ? b : a)).row.result.safety;
}

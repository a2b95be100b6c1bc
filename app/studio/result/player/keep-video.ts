import { chosenSwitches } from '../../../../lib/contract/parameters';
import type { Completed } from '../../../../lib/contract/prediction';
import { predictionLock } from '../../../../lib/predictions/locks';
import type { PredictionStore } from '../../../../lib/predictions/store';
import { removeVideo, writeVideo } from '../../../../lib/predictions/videos';

/**
 * Keeps a video that was made of others as a prediction of its own, with the settings and the start image of
 * its first part. The videos that it was made of stay as they are.
 *
 * @param file as `cutParts` and the engine's `enhance` write it: its metadata have its own id, its parts and its verdict
 * @param videos that it may be made of
 * @param copied whether its frames were not encoded again
 * @returns its id
 * @throws KinoraError `STORAGE_FULL`, `VIDEO_UNREADABLE`
 */
export async function keepVideo(
  store: PredictionStore,
  file: Blob,
  videos: readonly Completed[],
  copied: boolean,
): Promise<string> {
  const [{ readVideoMetadata }, { inspectVideo }] = await Promise.all([
    import('../../../../lib/video/metadata'),
    import('../../../../lib/video/inspect'),
  ]);
  const { id, parts = [], safety, ...written } = await readVideoMetadata(file);
  const { width, height, frames, frameRate } = await inspectVideo(file);
  const used = videos.filter((video) => parts.some((part) => part.id === video.id));
  const [first] = used;
  if (!first) throw new TypeError('The video is made of none of these.');
  const { safety: _, ...firstResult } = first.result;
  const { model, profile, backend, options } = first;
  const source = await store.source(first.id);
  const now = new Date().toISOString();
  const row: Completed = {
    id,
    model,
    profile,
    backend,
    parameters: { ...first.parameters, ...chosenSwitches(written) },
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
      timings: { total: used.reduce((sum, { result }) => sum + result.timings.total, 0) },
    },
    parts: parts.map(({ id: partId, from, to }) => ({ id: partId, from, to })),
  };
  // A page that is opened now would delete a video without a row.
  await navigator.locks.request(predictionLock(id), async () => {
    await writeVideo(row.result.videoFile, file);
    try {
      await store.create(row, source ?? null);
    } catch (thrown) {
      await removeVideo(row.result.videoFile);
      throw thrown;
    }
  });
  return id;
}

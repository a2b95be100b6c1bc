import type { Completed, Prediction } from '../contract';
import type { PredictionStore } from './store';

const dayMs = 86_400_000;

/** The finished videos among predictions. */
export function videosOf(rows: readonly Prediction[]): Completed[] {
  return rows.filter((row) => row.status === 'completed');
}

/**
 * The videos that a clean-up deletes: no favourites.
 *
 * @param days only those that were finished at least as many days ago
 * @param now milliseconds since the epoch
 */
export function deletableVideos(
  videos: readonly Completed[],
  days: number,
  now: number,
): Completed[] {
  return videos.filter(
    (video) => !video.favourite && now - Date.parse(video.completedAt) >= days * dayMs,
  );
}

/** How much storage videos take, in bytes. */
export function bytesOf(videos: readonly Completed[]): number {
  return videos.reduce((sum, { result }) => sum + result.videoBytes, 0);
}

/** Deletes videos for good, with their requests and input files; not those that a tab works on. */
export async function deleteVideos(
  store: PredictionStore,
  videos: readonly Completed[],
): Promise<void> {
  await store.purge(await store.remove(videos.map(({ id }) => id)));
}

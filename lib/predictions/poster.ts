import type { Prediction } from '../contract/prediction';
import type { PredictionStore } from './store';
import { drawFrame } from './video-frame';
import { readVideo } from './videos';

/** Longer side of a poster in pixels. */
const posterSize = 480;

/**
 * Makes and saves the poster of a finished video: a small JPEG of the frame in its middle, because the first
 * frame is the start image, which other videos share.
 *
 * @returns whether there is one now; a video that cannot be decoded has none
 */
export async function savePoster(
  store: PredictionStore,
  prediction: Extract<Prediction, { status: 'completed' }>,
): Promise<boolean> {
  try {
    const video = await readVideo(prediction.result.videoFile);
    const frame = await drawFrame(video, (duration) => duration / 2, posterSize);
    const picture = await frame.convertToBlob({ type: 'image/jpeg', quality: 0.8 });
    await store.setPoster(prediction.id, picture);
    return true;
  } catch {
    return false; // Lists show the start image instead.
  }
}

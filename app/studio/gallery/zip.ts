import type { Completed } from '../../../lib/contract';
import type { PredictionStore } from '../../../lib/predictions/store';
import { readVideo } from '../../../lib/predictions/videos';
import { videoToSave } from '../../shared/saved-video';
import { videoName } from '../result/video-name';

/**
 * Puts finished videos into one ZIP, uncompressed, as H.264 does not get smaller.
 *
 * @throws KinoraError `FILE_UNREADABLE` if one of them is not here any more; then there is no ZIP
 */
export async function zipVideos(
  store: PredictionStore,
  predictions: readonly Completed[],
): Promise<Blob> {
  async function* files() {
    // One after the other: a copy is in memory.
    for (const prediction of predictions) {
      const video = await readVideo(prediction.result.videoFile);
      yield {
        name: videoName(prediction),
        lastModified: new Date(prediction.completedAt),
        input: await videoToSave(store, prediction, video),
      };
    }
  }
  const { downloadZip } = await import('client-zip');
  return downloadZip(files()).blob();
}

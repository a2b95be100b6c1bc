import type { Prediction } from '../../../lib/contract/prediction';
import { readVideo } from '../../../lib/predictions/videos';
import { videoName } from '../result/video-name';

/**
 * Puts finished videos into one ZIP, uncompressed, as H.264 does not get smaller.
 *
 * @throws KinoraError `FILE_UNREADABLE` if one of them is not here any more; then there is no ZIP
 */
export async function zipVideos(
  predictions: readonly Extract<Prediction, { status: 'completed' }>[],
): Promise<Blob> {
  const files = predictions.map(async (prediction) => ({
    name: videoName(prediction),
    lastModified: new Date(prediction.completedAt),
    input: await readVideo(prediction.result.videoFile),
  }));
  const { downloadZip } = await import('client-zip');
  return downloadZip(await Promise.all(files)).blob();
}

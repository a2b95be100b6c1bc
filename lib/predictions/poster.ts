import { KinoraError, type Prediction } from '../contract';
import type { PredictionStore } from './store';
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
    const frame = await drawMiddle(video);
    const picture = await frame.convertToBlob({ type: 'image/jpeg', quality: 0.8 });
    await store.setPoster(prediction.id, picture);
    return true;
  } catch {
    return false; // Lists show the start image instead.
  }
}

/** Decodes the frame in the middle of a video, and makes it smaller. @throws KinoraError `VIDEO_UNREADABLE` */
async function drawMiddle(video: Blob): Promise<OffscreenCanvas> {
  const url = URL.createObjectURL(video);
  const element = document.createElement('video');
  element.muted = true;
  element.preload = 'auto';
  try {
    const loaded = once(element, 'loadeddata');
    element.src = url;
    await loaded;
    const sought = once(element, 'seeked');
    element.currentTime = element.duration / 2;
    await sought;
    const { videoWidth, videoHeight } = element;
    const scale = Math.min(1, posterSize / Math.max(videoWidth, videoHeight));
    const [width, height] = [Math.round(videoWidth * scale), Math.round(videoHeight * scale)];
    const canvas = new OffscreenCanvas(width, height);
    canvas.getContext('2d')?.drawImage(element, 0, 0, width, height);
    return canvas;
  } finally {
    element.removeAttribute('src');
    element.load();
    URL.revokeObjectURL(url);
  }
}

function once(element: HTMLVideoElement, event: string): Promise<void> {
  return new Promise((resolve, reject) => {
    element.addEventListener(event, () => resolve(), { once: true });
    element.addEventListener('error', () => reject(new KinoraError('VIDEO_UNREADABLE')), {
      once: true,
    });
  });
}

import { KinoraError } from '../../lib/contract/errors';
import { framesPerSecond } from '../../lib/contract/request';

/**
 * The last frame of a video as a PNG.
 *
 * @throws KinoraError `VIDEO_UNREADABLE` when the browser cannot play the file
 */
export async function readLastFrame(video: Blob): Promise<Blob> {
  const url = URL.createObjectURL(video);
  const element = document.createElement('video');
  element.muted = true;
  element.preload = 'auto';
  try {
    const loaded = once(element, 'loadeddata');
    element.src = url;
    await loaded;
    const sought = once(element, 'seeked');
    // The middle of the last frame: its very end may already be the end of the stream.
    element.currentTime = Math.max(0, element.duration - 0.5 / framesPerSecond);
    await sought;
    const canvas = new OffscreenCanvas(element.videoWidth, element.videoHeight);
    canvas.getContext('2d')?.drawImage(element, 0, 0);
    return await canvas.convertToBlob({ type: 'image/png' });
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

import { KinoraError } from '../contract/errors';

/**
 * Decodes one frame of a video.
 *
 * @param timeOf the time of the frame in seconds, from the duration in seconds
 * @param longerSide of the picture in pixels; without it the frame keeps its size
 * @throws KinoraError `VIDEO_UNREADABLE` if the browser cannot play the file
 */
export async function drawFrame(
  video: Blob,
  timeOf: (duration: number) => number,
  longerSide?: number,
): Promise<OffscreenCanvas> {
  const url = URL.createObjectURL(video);
  const element = document.createElement('video');
  element.muted = true;
  element.preload = 'auto';
  try {
    const loaded = once(element, 'loadeddata');
    element.src = url;
    await loaded;
    const sought = once(element, 'seeked');
    element.currentTime = timeOf(element.duration);
    await sought;
    const { videoWidth, videoHeight } = element;
    const scale = Math.min(1, (longerSide ?? Infinity) / Math.max(videoWidth, videoHeight));
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

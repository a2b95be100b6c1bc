import {
  backing,
  blurCells,
  type Completed,
  centred,
  type Framing,
  KinoraError,
  type PixelSize,
  placeImage,
  type Size,
  sizeInPixels,
  sizes,
} from '../contract';
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
export async function savePoster(store: PredictionStore, prediction: Completed): Promise<boolean> {
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

/** Longer side of a thumbnail in pixels. */
const thumbnailSize = 320;

/** A small JPEG of an image as the video shows it, or null if the browser cannot decode it. */
export async function makeThumbnail(
  image: Blob,
  framing: Framing = centred,
  size: Size = sizes[0],
): Promise<Blob | null> {
  let bitmap: ImageBitmap;
  try {
    bitmap = await createImageBitmap(image);
  } catch {
    // The browser cannot decode it.
    return null;
  }
  const video = sizeInPixels(size);
  const scale = thumbnailSize / Math.max(video.width, video.height);
  const frame = {
    width: Math.round(video.width * scale),
    height: Math.round(video.height * scale),
  };
  const canvas = new OffscreenCanvas(frame.width, frame.height);
  const context = canvas.getContext('2d');
  if (!context) return null;
  context.imageSmoothingQuality = 'high';
  context.fillStyle = backing(framing);
  context.fillRect(0, 0, frame.width, frame.height);
  if (framing.background === 'blur' && framing.zoom < 1) drawBlurred(context, bitmap, frame);
  const { x, y } = placeImage(bitmap, framing, frame);
  // Behind a transparent image there is no blurred one.
  context.fillRect(x.start, y.start, x.length, y.length);
  context.drawImage(bitmap, x.start - x.offset, y.start - y.offset, x.resized, y.resized);
  bitmap.close();
  return canvas.convertToBlob({ type: 'image/jpeg', quality: 0.8 });
}

/** The image covering the frame, shrunk to few cells and enlarged smoothly, as the engine does. */
function drawBlurred(
  context: OffscreenCanvasRenderingContext2D,
  bitmap: ImageBitmap,
  frame: PixelSize,
): void {
  const scale = blurCells / Math.max(frame.width, frame.height);
  const width = Math.round(frame.width * scale);
  const height = Math.round(frame.height * scale);
  const cells = new OffscreenCanvas(width, height);
  const { x, y } = placeImage(bitmap, centred, { width, height });
  const small = cells.getContext('2d');
  if (!small) return;
  small.imageSmoothingQuality = 'high';
  small.drawImage(bitmap, -x.offset, -y.offset, x.resized, y.resized);
  context.drawImage(cells, 0, 0, frame.width, frame.height);
}

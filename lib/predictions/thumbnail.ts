import {
  backing,
  blurCells,
  centred,
  type Framing,
  type PixelSize,
  placeImage,
  type Size,
  sizeInPixels,
  sizes,
} from '../contract';

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

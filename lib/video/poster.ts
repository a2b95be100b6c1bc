/** Longer side of a poster, in pixels. */
const longSide = 640;

/**
 * A small still of a frame for lists and link previews.
 *
 * @param frame RGBA, width·height·4 bytes
 * @returns a WebP; a PNG where the browser writes no WebP
 */
export async function makePoster(
  frame: Uint8ClampedArray<ArrayBuffer>,
  width: number,
  height: number,
): Promise<Blob> {
  const scale = Math.min(1, longSide / Math.max(width, height));
  const bitmap = await createImageBitmap(new ImageData(frame, width, height), {
    resizeWidth: Math.max(1, Math.round(width * scale)),
    resizeHeight: Math.max(1, Math.round(height * scale)),
    resizeQuality: 'high',
  });
  const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
  canvas.getContext('bitmaprenderer')?.transferFromImageBitmap(bitmap);
  return canvas.convertToBlob({ type: 'image/webp', quality: 0.85 });
}

/** Longer side of a thumbnail in pixels. */
const thumbnailSize = 320;

/** A small JPEG of an image, or null if the browser cannot decode it. */
export async function makeThumbnail(image: Blob): Promise<Blob | null> {
  let bitmap: ImageBitmap;
  try {
    bitmap = await createImageBitmap(image);
  } catch {
    // The browser cannot decode it.
    return null;
  }
  const scale = Math.min(1, thumbnailSize / Math.max(bitmap.width, bitmap.height));
  const width = Math.max(1, Math.round(bitmap.width * scale));
  const height = Math.max(1, Math.round(bitmap.height * scale));
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext('2d');
  context?.drawImage(bitmap, 0, 0, width, height);
  bitmap.close();
  return context ? canvas.convertToBlob({ type: 'image/jpeg', quality: 0.8 }) : null;
}

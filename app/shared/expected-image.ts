import type { Size } from '../../lib/contract/parameters';

const key = 'kinora:image';

/**
 * A script for the page's head: the form has the room of its start image from the first paint on, although the
 * image is read from the database later. Its style is in `globals.css`.
 */
export const imageScript = `try {
  const size = localStorage.getItem('${key}');
  if (size) document.documentElement.dataset.image = size;
} catch {}`;

/**
 * Keeps room in the form for a start image that is about to be there.
 *
 * @param size of its video; null where the image is there, or none comes
 */
export function expectImage(size: Size | null): void {
  if (size) document.documentElement.dataset.image = size;
  else delete document.documentElement.dataset.image;
}

/** Notes for the next time that the page opens whether the form has a start image, and the size of its video. */
export function noteImage(size: Size | null): void {
  try {
    if (size) localStorage.setItem(key, size);
    else localStorage.removeItem(key);
  } catch {
    // Where the browser stores nothing, the form has no image the next time.
  }
}

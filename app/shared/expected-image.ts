import type { Size } from '../../lib/contract/parameters';

const key = 'kinora:image';
const videosKey = 'kinora:videos';

/**
 * A script for the page's head, as the database is read later: the form has the room of its start image from the
 * first paint on (its style is in `globals.css`), and the picture of the introduction shows where no video is expected.
 */
export const imageScript = `try {
  const size = localStorage.getItem('${key}');
  if (size) document.documentElement.dataset.image = size;
  if (localStorage.getItem('${videosKey}')) document.documentElement.dataset.videos = '';
} catch {}`;

/** Notes for the next time that the page opens whether a run or a video is shown in the place of the introduction. */
export function noteVideos(shown: boolean): void {
  try {
    if (shown) localStorage.setItem(videosKey, '1');
    else localStorage.removeItem(videosKey);
  } catch {
    // Where the browser stores nothing, there are no videos the next time.
  }
}

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

import type { Size } from '../../lib/contract';
import { writeText } from './stored-text';

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

/**
 * Notes whether a run or a video is shown in the place of the introduction: whose picture then does not show while
 * another part is loaded, nor the next time that the page opens.
 */
export function noteVideos(shown: boolean): void {
  document.documentElement.toggleAttribute('data-videos', shown);
  writeText(videosKey, shown ? '1' : null);
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
  writeText(key, size);
}

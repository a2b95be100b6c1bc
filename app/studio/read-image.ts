import { KinoraError } from '../../lib/contract/errors';
import { readImageFile } from '../../lib/video/image';
import type { ChosenImage } from './form-state';

/**
 * Checks an image before it enters the form, by the same rules as the engine.
 *
 * @throws KinoraError one of the `IMAGE_…` codes, or `FILE_UNREADABLE`
 */
export async function readImage(file: Blob, name: string): Promise<ChosenImage> {
  const image = await readImageFile(file);
  try {
    (await createImageBitmap(image)).close();
  } catch (cause) {
    throw new KinoraError('IMAGE_UNREADABLE', undefined, { cause });
  }
  return { name, file: image };
}

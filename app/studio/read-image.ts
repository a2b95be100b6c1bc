import { KinoraError } from '../../lib/contract/errors';
import { checkImageBytes, sniffImage } from '../../lib/video/sniff';
import type { ChosenImage } from './form-state';

/**
 * Checks an image before it enters the form, by the same rules as the engine.
 *
 * The bytes are copied, so that the image stays readable when the file behind it moves.
 *
 * @throws KinoraError one of the `IMAGE_…` codes, or `FILE_UNREADABLE`
 */
export async function readImage(file: Blob, name: string): Promise<ChosenImage> {
  checkImageBytes(file.size);
  const bytes = await readBytes(file);
  const { format } = sniffImage(bytes);
  const image = new Blob([bytes], { type: `image/${format}` });
  try {
    (await createImageBitmap(image)).close();
  } catch (cause) {
    throw new KinoraError('IMAGE_UNREADABLE', undefined, { cause });
  }
  return { name, file: image };
}

async function readBytes(file: Blob): Promise<Uint8Array<ArrayBuffer>> {
  try {
    return new Uint8Array(await file.arrayBuffer());
  } catch (cause) {
    throw new KinoraError('FILE_UNREADABLE', 'The image file could not be read.', { cause });
  }
}

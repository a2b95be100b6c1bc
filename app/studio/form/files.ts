import { KinoraError } from '../../../lib/contract/errors';
import type { Framing } from '../../../lib/contract/framing';
import type { Parameters } from '../../../lib/contract/request';
import type { SharedRequest } from '../../../lib/contract/v3/share';
import { type ChosenImage, type FormValues, fromParameters } from './form-state';

/**
 * Checks an image for the form, by the same rules as the engine.
 *
 * @throws KinoraError one of the `IMAGE_…` codes, or `FILE_UNREADABLE`
 */
export async function readImage(file: Blob, name: string): Promise<ChosenImage> {
  const { readImageFile } = await import('../../../lib/video/image');
  const image = await readImageFile(await withoutHeic(file, name));
  try {
    const bitmap = await createImageBitmap(image);
    const { width, height } = bitmap;
    bitmap.close();
    return { name, file: image, pixels: { width, height } };
  } catch (cause) {
    throw new KinoraError('IMAGE_UNREADABLE', undefined, { cause });
  }
}

/** The image as a JPEG where it is HEIC and the browser decodes that; else the file as it is. */
async function withoutHeic(file: Blob, name: string): Promise<Blob> {
  if (!/hei[cf]$/i.test(file.type || name)) return file;
  try {
    const bitmap = await createImageBitmap(file);
    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
    canvas.getContext('2d')?.drawImage(bitmap, 0, 0);
    bitmap.close();
    return await canvas.convertToBlob({ type: 'image/jpeg', quality: 0.95 });
  } catch {
    return file; // The rules of images have a sentence for it.
  }
}

/**
 * Reads the settings of a video that Kinora made: the form's values, seed included, how its image was framed,
 * and the names and scales of its LoRAs; of a copy that was shared what it tells. A video contains neither the image nor the files of the LoRAs.
 *
 * @throws KinoraError `VIDEO_UNREADABLE`
 */
export async function readSettings(file: Blob): Promise<{
  values: Partial<FormValues>;
  framing: Framing | undefined;
  loras: Parameters['loras'];
}> {
  // The MP4 reader is large and rarely used, so it is loaded only here.
  const { readSharedTags, readVideoMetadata } = await import('../../../lib/video/metadata');
  const { parseParameters } = await import('../../../lib/contract/request');
  const shared = await readSharedTags(file);
  if (shared) return { values: sharedValues(shared), framing: undefined, loras: [] };
  const metadata = await readVideoMetadata(file);
  const { backend, model, profile, applied, prompt_optimization: optimization = null } = metadata;
  const parameters = fromParameters(parseParameters(metadata));
  const isStandard = profile === 'standard';
  const switches = {
    fullDecode: !isStandard && applied?.decoder === 'full',
    cache: isStandard && (applied?.cache ?? 'none') !== 'none',
  };
  const values = { ...parameters, backend, model, profile, optimization, ...switches };
  return { values, framing: metadata.framing, loras: metadata.loras };
}

/** The form's values in a request of which only a part may be shown. */
export function sharedValues({ parameters, profile }: SharedRequest): Partial<FormValues> {
  const { prompt, negative_prompt, size, ...numbers } = parameters;
  const texts = Object.entries(numbers).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)]],
  );
  return {
    ...(prompt !== undefined && { prompt }),
    ...(negative_prompt !== undefined && { negative_prompt }),
    ...(size && { size, sizeChosen: true }),
    ...(profile && { profile }),
    ...Object.fromEntries(texts),
  };
}

/**
 * The last frame of a video as a PNG.
 *
 * @throws KinoraError `VIDEO_UNREADABLE` if the browser cannot decode the file
 */
export async function readLastFrame(video: Blob): Promise<Blob> {
  const { readFrameImage } = await import('../../../lib/video/frames');
  return readFrameImage(video);
}

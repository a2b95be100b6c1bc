import { type Framing, KinoraError, type Parameters } from '../../../lib/contract';
import type { SharedRequest } from '../../../lib/contract/v3';
import type { SharedTags, VideoMetadata } from '../../../lib/video/metadata';
import { type ChosenImage, type FormValues, fromParameters, fromRun } from './form-state';
import { askedSampling } from './sampling';

/** A LoRA of a video, as its file tells it. */
export type MadeWithLora = Parameters['loras'][number] & {
  /** Absent in files of earlier versions. */
  readonly sha256?: string;
  /** Where it is found: an address. */
  readonly source?: string | undefined;
};

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
 * a small JPEG of it where the file has one, the same of its end image, and what its LoRAs are; of a copy that was shared what it tells.
 *
 * @throws KinoraError `VIDEO_UNREADABLE`
 */
export async function readSettings(file: Blob): Promise<{
  values: Partial<FormValues>;
  framing: Framing | undefined;
  image: Blob | undefined;
  /** The end image, as far as the file has it; null where the end was left to the model, undefined where it does not tell. */
  lastImage: { readonly framing: Framing; readonly file: Blob | undefined } | null | undefined;
  loras: readonly MadeWithLora[];
  /** Null for a copy that was shared: it does not tell the whole request. */
  metadata: VideoMetadata | null;
}> {
  // The MP4 reader is large and rarely used, so it is loaded only here.
  const { readSharedTags, readVideoMetadata } = await import('../../../lib/video/metadata');
  const { parseParameters } = await import('../../../lib/contract/request');
  const shared = await readSharedTags(file);
  if (shared) {
    const { framing, start_image: image } = shared;
    const values = sharedValues(shared.shared);
    const lastImage = lastOf(shared) ?? undefined;
    return { values, framing, loras: [], image: jpegOf(image), lastImage, metadata: null };
  }
  const metadata = await readVideoMetadata(file);
  const { backend, model, profile, applied, prompt_optimization: optimization } = metadata;
  const parameters = parseParameters(metadata);
  const options = { ...askedSampling(profile, applied), promptOptimizer: optimization };
  const values = fromRun({ model, profile, backend, parameters, options });
  const { framing, start_image: image, loras, lora_files: files = [] } = metadata;
  return {
    values,
    framing,
    loras: loras.map((lora, index) => ({ ...lora, ...files[index] })),
    image: jpegOf(image),
    lastImage: lastOf(metadata),
    metadata,
  };
}

function lastOf({
  last_framing: framing,
  last_image: image,
}: Pick<SharedTags, 'last_framing' | 'last_image'>) {
  return framing ? { framing, file: jpegOf(image) } : null;
}

function jpegOf(base64: string | undefined): Blob | undefined {
  if (base64 === undefined) return undefined;
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  return new Blob([bytes], { type: 'image/jpeg' });
}

/** The form's values in a request of which only a part may be shown. */
export function sharedValues({ parameters, profile }: SharedRequest): Partial<FormValues> {
  return { ...fromParameters(parameters), ...(profile && { profile }) };
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

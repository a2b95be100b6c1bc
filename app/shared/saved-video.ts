import { backing, base64, centred, toKinoraError } from '../../lib/contract';
import type { PredictionStore } from '../../lib/predictions/store';
import type { FileImages, FinishedVideo } from '../../lib/video/metadata';
import { loadFinished } from './finished-settings';

/**
 * A finished video as a file that leaves this browser: a copy that tells how it was made, with its images where the
 * settings say so. What is stored tells nothing.
 *
 * @param video its file
 * @throws KinoraError `VIDEO_UNREADABLE`
 */
export async function videoToSave(
  store: PredictionStore,
  row: FinishedVideo,
  video: Blob,
): Promise<Blob> {
  const { withTags } = await import('../../lib/video/metadata');
  return withTags(video, await tagsToSave(store, row));
}

/** The tags of {@link videoToSave}. */
export async function tagsToSave(store: PredictionStore, row: FinishedVideo) {
  // The MP4 writer is large, so it is loaded only here.
  const { toMetadataTags } = await import('../../lib/video/metadata');
  const { imageInFile } = await loadFinished(store.database);
  return toMetadataTags(row, imageInFile ? await imagesOf(store, row) : {});
}

/** The images of a request as small JPEGs; an image that is not stored or cannot be decoded is left out. */
export async function imagesOf(
  store: PredictionStore,
  { id, options }: Pick<FinishedVideo, 'id' | 'options'>,
): Promise<FileImages> {
  const { image, lastImage } = (await store.source(id)) ?? {};
  const start = image && (await smallJpeg(image, options.framing));
  const last = lastImage && (await smallJpeg(lastImage, options.lastImage?.framing));
  return { ...(start && { start_image: start }), ...(last && { last_image: last }) };
}

async function smallJpeg(file: Blob, framing = centred): Promise<string | null> {
  const { decodeImage, toSmallJpeg } = await import('../../lib/video/image');
  const { maxStartImageBytes } = await import('../../lib/video/metadata');
  try {
    const jpeg = await toSmallJpeg(await decodeImage(file, backing(framing)), maxStartImageBytes);
    return base64(new Uint8Array(await jpeg.arrayBuffer()));
  } catch (thrown) {
    if (toKinoraError(thrown).code.startsWith('IMAGE_')) return null;
    throw thrown;
  }
}

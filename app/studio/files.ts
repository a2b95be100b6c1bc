import { KinoraError } from '../../lib/contract/errors';
import type { Framing } from '../../lib/contract/framing';
import { framesPerSecond } from '../../lib/contract/parameters';
import type { Parameters } from '../../lib/contract/request';
import { type ChosenImage, type FormValues, fromParameters } from './form-state';

/**
 * Checks an image for the form, by the same rules as the engine.
 *
 * @throws KinoraError one of the `IMAGE_…` codes, or `FILE_UNREADABLE`
 */
export async function readImage(file: Blob, name: string): Promise<ChosenImage> {
  const { readImageFile } = await import('../../lib/video/image');
  const image = await readImageFile(file);
  try {
    const bitmap = await createImageBitmap(image);
    const { width, height } = bitmap;
    bitmap.close();
    return { name, file: image, pixels: { width, height } };
  } catch (cause) {
    throw new KinoraError('IMAGE_UNREADABLE', undefined, { cause });
  }
}

/**
 * Reads the settings of a video that Kinora made: the form's values, seed included, how its image was framed,
 * and the names and scales of its LoRAs. A video contains neither the image nor the files of the LoRAs.
 *
 * @throws KinoraError `VIDEO_UNREADABLE`
 */
export async function readSettings(file: Blob): Promise<{
  values: Partial<FormValues>;
  framing: Framing | undefined;
  loras: Parameters['loras'];
}> {
  // The MP4 reader is large and rarely used, so it is loaded only here.
  const { readVideoMetadata } = await import('../../lib/video/metadata');
  const { parseParameters } = await import('../../lib/contract/request');
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

/**
 * The last frame of a video as a PNG.
 *
 * @throws KinoraError `VIDEO_UNREADABLE` if the browser cannot play the file
 */
export async function readLastFrame(video: Blob): Promise<Blob> {
  const url = URL.createObjectURL(video);
  const element = document.createElement('video');
  element.muted = true;
  element.preload = 'auto';
  try {
    const loaded = once(element, 'loadeddata');
    element.src = url;
    await loaded;
    const sought = once(element, 'seeked');
    // The middle of the last frame, because its end may already be the end of the stream.
    element.currentTime = Math.max(0, element.duration - 0.5 / framesPerSecond);
    await sought;
    const canvas = new OffscreenCanvas(element.videoWidth, element.videoHeight);
    canvas.getContext('2d')?.drawImage(element, 0, 0);
    return await canvas.convertToBlob({ type: 'image/png' });
  } finally {
    element.removeAttribute('src');
    element.load();
    URL.revokeObjectURL(url);
  }
}

function once(element: HTMLVideoElement, event: string): Promise<void> {
  return new Promise((resolve, reject) => {
    element.addEventListener(event, () => resolve(), { once: true });
    element.addEventListener('error', () => reject(new KinoraError('VIDEO_UNREADABLE')), {
      once: true,
    });
  });
}

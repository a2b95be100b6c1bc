import { KinoraError } from '../contract';
import { checkImageBytes, sniffImage } from './sniff';

/** A decoded image: upright, opaque, sRGB. */
export interface Pixels {
  readonly width: number;
  readonly height: number;
  /** RGBA, row by row; A is always 255. */
  readonly data: Uint8ClampedArray<ArrayBuffer>;
}

/** Pixels copied per step: iOS gives no canvas over 16.7 megapixels, and this one stays small. */
const stripPixels = 4_000_000;

/**
 * Reads an image file and checks it by its bytes alone; nothing is decoded.
 *
 * @returns a copy of the bytes, so that they stay readable when the file behind them moves. The
 * bytes decide its type: a Blob's own type is only what a file name or a server claims
 * @throws KinoraError as {@link sniffImage} does, or `FILE_UNREADABLE`
 */
export async function readImageFile(blob: Blob): Promise<Blob> {
  checkImageBytes(blob.size);
  const bytes = await readBytes(blob);
  const { format } = sniffImage(bytes);
  return new Blob([bytes], { type: `image/${format}` });
}

/**
 * Decodes an image file as people see it: EXIF orientation applied; transparent parts over white;
 * colours converted to sRGB. Of an animation, the first frame.
 *
 * Colour profiles are honoured (`colorSpaceConversion: 'default'`): photos of most phones are in
 * Display P3 and would come out pale if their numbers were taken for sRGB. Files without a profile
 * are not touched by it and give the same numbers in every browser, but for the rounding of JPEG.
 *
 * @throws KinoraError `IMAGE_EMPTY`, `IMAGE_TOO_LARGE`, `IMAGE_UNREADABLE`,
 * `IMAGE_TOO_MANY_PIXELS` or `IMAGE_TRUNCATED`; nothing is decoded in vain: all but some cases of
 * `IMAGE_UNREADABLE` are found in the file's own bytes
 */
export async function decodeImage(blob: Blob): Promise<Pixels> {
  const bitmap = await createBitmap(await readImageFile(blob));
  try {
    return readPixels(bitmap);
  } finally {
    bitmap.close();
  }
}

async function readBytes(blob: Blob): Promise<Uint8Array<ArrayBuffer>> {
  try {
    return new Uint8Array(await blob.arrayBuffer());
  } catch (cause) {
    throw new KinoraError('FILE_UNREADABLE', 'The image file could not be read.', { cause });
  }
}

async function createBitmap(blob: Blob): Promise<ImageBitmap> {
  try {
    return await createImageBitmap(blob, {
      imageOrientation: 'from-image',
      colorSpaceConversion: 'default',
    });
  } catch (cause) {
    throw new KinoraError('IMAGE_UNREADABLE', undefined, { cause });
  }
}

function readPixels(bitmap: ImageBitmap): Pixels {
  const { width, height } = bitmap;
  const data = new Uint8ClampedArray(width * height * 4);
  const stripRows = Math.min(height, Math.max(1, Math.floor(stripPixels / width)));
  // `willReadFrequently` keeps the canvas on the CPU, where a copy is exact.
  const context = new OffscreenCanvas(width, stripRows).getContext('2d', {
    willReadFrequently: true,
  });
  if (!context) throw new KinoraError('IMAGE_UNREADABLE');
  context.fillStyle = 'white';
  context.imageSmoothingEnabled = false;
  for (let top = 0; top < height; top += stripRows) {
    const rows = Math.min(stripRows, height - top);
    context.fillRect(0, 0, width, stripRows);
    context.drawImage(bitmap, 0, -top);
    data.set(context.getImageData(0, 0, width, rows).data, top * width * 4);
  }
  return { width, height, data };
}

import { KinoraError } from '../contract';
import { checkImageBytes, sniffImage } from './sniff';

/** A decoded image: upright, opaque, sRGB. */
export interface Pixels {
  readonly width: number;
  readonly height: number;
  /** RGBA, row by row; A is always 255. */
  readonly data: Uint8ClampedArray<ArrayBuffer>;
}

/** Pixels copied per step: iOS has no canvas above 16.7 megapixels. */
const stripPixels = 4_000_000;

/**
 * Reads an image file and checks it by its bytes alone; nothing is decoded.
 *
 * @returns a copy of the bytes, which stays readable when the file is moved. Its type follows from the
 * bytes, since a Blob's own type is taken from a file name or a server
 * @throws KinoraError as {@link sniffImage} does, or `FILE_UNREADABLE`
 */
export async function readImageFile(blob: Blob): Promise<Blob> {
  checkImageBytes(blob.size);
  const { format, bytes } = await sniffImage(await readBytes(blob));
  return new Blob([bytes], { type: `image/${format}` });
}

/**
 * Decodes an image file: EXIF orientation applied, transparent parts over a colour, colours converted to sRGB. An
 * animation gives its first frame.
 *
 * Colour profiles are converted (`colorSpaceConversion: 'default'`): photos of most phones are in Display P3
 * and would be pale if they were read as sRGB. Files without a profile give the same numbers in every
 * browser, except for the rounding of JPEG.
 *
 * @param colour behind transparent parts, `#rrggbb`
 * @throws KinoraError `IMAGE_EMPTY`, `IMAGE_TOO_LARGE`, `IMAGE_UNREADABLE`,
 * `IMAGE_TOO_MANY_PIXELS` or `IMAGE_TRUNCATED`. All but some cases of `IMAGE_UNREADABLE` are found before
 * anything is decoded
 */
export async function decodeImage(blob: Blob, colour = '#ffffff'): Promise<Pixels> {
  const bitmap = await createBitmap(await readImageFile(blob));
  try {
    return readPixels(bitmap, colour);
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

function readPixels(bitmap: ImageBitmap, colour: string): Pixels {
  const { width, height } = bitmap;
  const data = new Uint8ClampedArray(width * height * 4);
  const stripRows = Math.min(height, Math.max(1, Math.floor(stripPixels / width)));
  // `willReadFrequently` keeps the canvas on the CPU, where a copy is exact.
  const context = new OffscreenCanvas(width, stripRows).getContext('2d', {
    willReadFrequently: true,
  });
  if (!context) throw new KinoraError('IMAGE_UNREADABLE');
  context.fillStyle = colour;
  context.imageSmoothingEnabled = false;
  for (let top = 0; top < height; top += stripRows) {
    const rows = Math.min(stripRows, height - top);
    context.fillRect(0, 0, width, stripRows);
    context.drawImage(bitmap, 0, -top);
    data.set(context.getImageData(0, 0, width, rows).data, top * width * 4);
  }
  return { width, height, data };
}

/** Longer side of a small JPEG in pixels. */
const smallSide = 1280;

/** Pixels as a small JPEG, made smaller until it has at most `maxBytes` bytes. */
export async function toSmallJpeg(pixels: Pixels, maxBytes: number): Promise<Blob> {
  const image = new ImageData(pixels.data, pixels.width, pixels.height);
  for (let side = smallSide; ; side = Math.ceil(side * 0.75)) {
    const scale = Math.min(1, side / Math.max(image.width, image.height));
    const bitmap = await createImageBitmap(image, {
      resizeWidth: Math.max(1, Math.round(image.width * scale)),
      resizeHeight: Math.max(1, Math.round(image.height * scale)),
      resizeQuality: 'high',
    });
    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
    canvas.getContext('2d')?.drawImage(bitmap, 0, 0);
    bitmap.close();
    const jpeg = await canvas.convertToBlob({ type: 'image/jpeg', quality: 0.85 });
    if (jpeg.size <= maxBytes) return jpeg;
  }
}

/** Pixels as a PNG, which keeps them exactly. */
export async function toPng({ data, width, height }: Pixels): Promise<Blob> {
  const canvas = new OffscreenCanvas(width, height);
  canvas.getContext('2d')?.putImageData(new ImageData(data, width, height), 0, 0);
  return canvas.convertToBlob({ type: 'image/png' });
}

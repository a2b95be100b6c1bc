import { openAsBlob } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { KinoraError } from '../../../lib/contract';
import { ApiError } from '../../../lib/contract/v3';
import { type ImageHeader, sniffImage } from '../../../lib/video/sniff';
import { readSafetensorsHeader } from '../../../lib/weights/formats/safetensors';
import { blobFile } from '../../../lib/weights/formats/source';
import type { Config } from '../../config';
import { invalidField } from '../requests';

/** What may be uploaded. */
type UploadKind = 'image' | 'lora';

/** Content type of adapters: safetensors has no registered one. */
export const loraType = 'application/octet-stream';
const imageTypes: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  webp: 'image/webp',
  gif: 'image/gif',
  avif: 'image/avif',
};

/** The content type of a sniffed image. */
export function imageType(header: Pick<ImageHeader, 'format'>): string {
  return `image/${header.format}`;
}

/**
 * The kind of a file by its name and its announced type.
 *
 * @throws ApiError `INVALID_PARAMETER` for what is neither image nor adapter
 */
export function announcedKind(
  filename: string,
  type: string | undefined,
): { kind: UploadKind; type: string } {
  const extension = /\.([a-z0-9]+)$/i.exec(filename)?.[1]?.toLowerCase() ?? '';
  if (extension === 'safetensors') return { kind: 'lora', type: loraType };
  const mediaType = type?.split(';')[0]?.trim().toLowerCase() ?? '';
  const byName = imageTypes[extension];
  if (Object.values(imageTypes).includes(mediaType)) return { kind: 'image', type: mediaType };
  if (byName) return { kind: 'image', type: byName };
  throw invalidField(
    'filename',
    'filename must be that of a PNG, JPEG, WebP, GIF or AVIF image or of a .safetensors file.',
  );
}

/** Largest upload of a kind, in bytes. */
export function maxBytesOf(kind: UploadKind, config: Config): number {
  return kind === 'image' ? config.KINORA_MAX_IMAGE_BYTES : config.KINORA_MAX_UPLOAD_BYTES;
}

/**
 * Checks and normalises a file name.
 *
 * @throws ApiError `INVALID_PARAMETER`
 */
export function checkFilename(text: string): string {
  const name = text.normalize('NFC').trim();
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
  const unsafe = /[/\\\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/.test(name);
  if (unsafe || /\p{Surrogate}/u.test(name) || /^\.*$/.test(name) || name.length > 255) {
    throw invalidField('filename', 'filename must be one name of at most 255 characters, no path.');
  }
  return name;
}

/**
 * Checks received bytes.
 *
 * @returns their actual content type
 * @throws ApiError `INVALID_IMAGE`, `INVALID_PARAMETER` with what is wrong
 */
export async function checkContent(
  file: string,
  kind: UploadKind,
  filename: string,
): Promise<string> {
  if (kind === 'image') return imageType(checkImage(await readFile(file)));
  try {
    await readSafetensorsHeader(blobFile(filename, await openAsBlob(file)));
    return loraType;
  } catch (thrown) {
    throw invalidField('file', sentenceOf(thrown), { cause: thrown });
  }
}

/** The header of an image's bytes. @throws ApiError `INVALID_IMAGE` with what is wrong, for the field */
export function checkImage(bytes: Uint8Array, field = 'image'): ImageHeader {
  try {
    return sniffImage(bytes);
  } catch (thrown) {
    throw invalidField(field, sentenceOf(thrown), { code: 'INVALID_IMAGE', cause: thrown });
  }
}

/** The message of an expected failure; any other error is rethrown. */
export function sentenceOf(thrown: unknown): string {
  if (thrown instanceof KinoraError || thrown instanceof ApiError) return thrown.message;
  throw thrown;
}

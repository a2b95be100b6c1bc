import { maxImageBytes } from '../../../lib/contract/request';
import type { ApiError, ImageField } from '../../../lib/contract/v3';
import type { Caller } from '../../access/caller';
import type { Config } from '../../config';
import { GuardError, statusError } from '../../guard/errors';
import type { JobImage } from '../../store/schema';
import { putBlob } from '../blobs';
import { ownImage } from '../inputs';
import { invalidField } from '../requests';
import { checkImage, imageType, sentenceOf } from '../uploads/kinds';
import { insertStored, linkedUpload, newUpload } from '../uploads/rows';
import type { IntakeContext } from './index';

/** Longest fetch of one image, in milliseconds. */
export const fetchMs = 30_000;
/** Longest wait for the first byte, in milliseconds: a host that does not answer blocks other fetches. */
const answerMs = 10_000;

/** Why an image was not fetched, in one sentence. */
export class FetchFailure extends Error {
  constructor(
    sentence: string,
    /** The next try may succeed. */
    readonly isPassing: boolean,
  ) {
    super(sentence);
  }
}

/** An image of a job. */
export interface ImageOf {
  readonly jobId: string;
  readonly field: ImageField;
}

/** How sentences name an image. */
const names: Readonly<Record<ImageField, string>> = {
  image: 'The image',
  last_image: 'The end image',
};

/**
 * An image of a submission, where it needs no fetch.
 *
 * @returns `url` is the image's address in the prediction; `image` is null where it is to be fetched
 * @throws ApiError `INVALID_IMAGE`, `INVALID_PARAMETER`, `STORAGE_DOWN`
 */
export async function acceptImage(
  context: IntakeContext,
  of: ImageOf,
  sent: string,
  caller: Caller,
): Promise<{ url: string; image: JobImage | null }> {
  const { field } = of;
  const text = sent.trim();
  if (!/^https?:/i.test(text)) return await keepBase64(context, of, text, caller);
  const upload = await linkedUpload(context, text, caller.owner);
  if (upload !== undefined) {
    if (!upload?.blobKey) {
      throw unusable(field, `The upload that ${field} names is not there, or has expired.`);
    }
    if (!upload.contentType.startsWith('image/'))
      throw unusable(field, `The upload that ${field} names is no image.`);
    const { blobKey: key, contentType: type, bytes } = upload;
    return { url: text, image: { key, type, bytes } };
  }
  try {
    context.guard.check(text, { http: context.config.KINORA_ALLOW_HTTP_IMAGES });
  } catch (thrown) {
    if (!(thrown instanceof GuardError)) throw thrown;
    throw invalidField(field, `${field}: ${thrown.message}`, { cause: thrown });
  }
  return { url: text, image: null };
}

/**
 * Stores an image in base64, alone or in a data URI, as an upload of its owner, so that the prediction has a short
 * address. Node decodes both alphabets (RFC 4648, 4 and 5) and skips white space.
 */
async function keepBase64(
  context: IntakeContext,
  of: ImageOf,
  text: string,
  caller: Caller,
): Promise<{ url: string; image: JobImage }> {
  const { config, links } = context;
  const base64 = text.slice(text.indexOf(',') + 1);
  // Checked before decoding: four characters are three bytes, and a line of text may end with two more.
  if (base64.length > maxBytesOf(config) * 1.4 + 1000) {
    throw tooLarge(of.field, config);
  }
  const bytes = Buffer.from(base64, 'base64');
  const type = checked(bytes, of.field, config);
  const { key, uploadId } = ownImage(of.jobId, of.field);
  const { sha256 } = await putBlob(context, key, bytes, { type, maxBytes: bytes.length });
  const filename = `image.${type.slice(type.indexOf('/') + 1)}`;
  const draft = newUpload(caller, { filename, contentType: type, bytes: bytes.length }, config);
  // An id that follows from the job's: it is deleted with the job.
  const row = { ...draft, id: uploadId, sha256, blobKey: key };
  const upload = await insertStored(context, row);
  return { url: links.uploadDownload(upload), image: { key, type, bytes: bytes.length } };
}

/**
 * Fetches an image of a waiting job, once.
 *
 * @returns where it is stored
 * @throws FetchFailure; ApiError `STORAGE_DOWN`; the signal's reason
 */
export async function fetchImage(
  context: IntakeContext,
  { jobId, field }: ImageOf,
  url: string,
  signal: AbortSignal,
): Promise<JobImage> {
  let bytes: Buffer;
  let type: string;
  try {
    bytes = await fetchBytes(context, url, signal);
    type = checked(bytes, field, context.config);
  } catch (thrown) {
    signal.throwIfAborted();
    if (thrown instanceof GuardError) {
      const sentence = `${names[field]} could not be loaded: ${thrown.message}`;
      throw new FetchFailure(sentence, thrown.isPassing);
    }
    throw new FetchFailure(`${names[field]} cannot be used: ${sentenceOf(thrown)}`, false);
  }
  const { key } = ownImage(jobId, field);
  await putBlob(context, key, bytes, { type, maxBytes: bytes.length });
  return { key, type, bytes: bytes.length };
}

async function fetchBytes(
  { config, guard }: IntakeContext,
  url: string,
  signal: AbortSignal,
): Promise<Buffer> {
  signal.throwIfAborted();
  const http = config.KINORA_ALLOW_HTTP_IMAGES;
  const limits = { redirects: 3, maxBytes: maxBytesOf(config), totalMs: fetchMs, answerMs };
  const answer = await guard.fetch(url, { http, ...limits, signal });
  if (answer.status !== 200) {
    answer.body.destroy();
    throw statusError(url, answer.status);
  }
  return Buffer.concat(await answer.body.toArray());
}

/** The type that the bytes have. @throws ApiError `INVALID_IMAGE` */
function checked(bytes: Uint8Array, field: ImageField, config: Config): string {
  if (bytes.length > maxBytesOf(config)) throw tooLarge(field, config);
  return imageType(checkImage(bytes, field));
}

/** Largest image, in bytes: the setting, within what every part of Kinora takes. */
function maxBytesOf(config: Config): number {
  return Math.min(config.KINORA_MAX_IMAGE_BYTES, maxImageBytes);
}

function tooLarge(field: ImageField, config: Config): ApiError {
  return unusable(field, `${names[field]} is larger than ${maxBytesOf(config)} bytes.`);
}

function unusable(field: ImageField, sentence: string): ApiError {
  return invalidField(field, sentence, { code: 'INVALID_IMAGE' });
}

import { setTimeout as delay } from 'node:timers/promises';
import { maxImageBytes } from '../../../lib/contract/request';
import type { ApiError } from '../../../lib/contract/v3';
import type { Caller } from '../../access/caller';
import type { Config } from '../../config';
import { GuardError } from '../../guard/errors';
import type { JobImage } from '../../store/schema';
import { isOwnUpload } from '../links';
import { invalidField } from '../requests';
import { inputKey } from '../retention';
import { checkImage, imageType, sentenceOf } from '../uploads/kinds';
import { insertStored, newUpload } from '../uploads/rows';
import type { IntakeContext } from './index';

/** Longest fetch of one image with all its tries, in milliseconds. */
export const fetchMs = 30_000;
/** Longest wait for the first byte, in milliseconds: a host that does not answer blocks other fetches. */
const answerMs = 10_000;
const maxTries = 3;
/** Waits before the second and the third try, in milliseconds. */
const pausesMs = [250, 1000];

/**
 * The image of a submission, where it needs no fetch.
 *
 * @returns `url` is the image's address in the prediction; `image` is null where it is to be fetched
 * @throws ApiError `INVALID_IMAGE`, `INVALID_PARAMETER`, `STORAGE_DOWN`
 */
export async function acceptImage(
  context: IntakeContext,
  jobId: string,
  text: string,
  caller: Caller,
): Promise<{ url: string; image: JobImage | null }> {
  if (/^data:/i.test(text)) return await keepDataUri(context, jobId, text, caller);
  if (isOwnUpload(text, context.links.publicUrl)) {
    const id = context.links.uploadOf(text);
    const upload = id === null ? null : await context.rows.get(id);
    if (!upload?.blobKey || upload.owner !== caller.owner) {
      throw unusable('The upload that image names is not there, or has expired.');
    }
    if (!upload.contentType.startsWith('image/')) throw unusable('The upload is no image.');
    const { blobKey: key, contentType: type, bytes } = upload;
    return { url: text, image: { key, type, bytes } };
  }
  try {
    context.guard.check(text);
  } catch (thrown) {
    if (!(thrown instanceof GuardError)) throw thrown;
    throw invalidField('image', `image: ${thrown.message}`, { cause: thrown });
  }
  return { url: text, image: null };
}

/** Stores a data URI as an upload of its owner, so that the prediction has a short address. */
async function keepDataUri(
  { config, blobs, links, rows }: IntakeContext,
  jobId: string,
  text: string,
  caller: Caller,
): Promise<{ url: string; image: JobImage }> {
  const base64 = text.slice(text.indexOf(',') + 1);
  // Checked before decoding: four characters are three bytes.
  if (base64.length > (maxBytesOf(config) * 4) / 3 + 1000) {
    throw unusable(`The image is larger than ${maxBytesOf(config)} bytes.`);
  }
  const bytes = Buffer.from(base64, 'base64');
  const type = checked(bytes, config);
  const key = inputKey(jobId);
  const { sha256 } = await blobs.put(key, bytes, { type, maxBytes: maxBytesOf(config) });
  const filename = `image.${type.slice(type.indexOf('/') + 1)}`;
  const draft = newUpload(caller, { filename, contentType: type, bytes: bytes.length }, config);
  // The job's own id: it is deleted with the job.
  const row = { ...draft, id: jobId, sha256, blobKey: key };
  const upload = await insertStored(rows, blobs, row);
  return { url: links.uploadDownload(upload), image: { key, type, bytes: bytes.length } };
}

/**
 * Fetches the image of a waiting job.
 *
 * @param answerTimeoutMs longest wait for an answer to begin
 * @returns where it is stored, or a sentence that says why it cannot be loaded
 * @throws ApiError `STORAGE_DOWN`; the signal's reason
 */
export async function fetchImage(
  context: IntakeContext,
  jobId: string,
  url: string,
  signal: AbortSignal,
  answerTimeoutMs = answerMs,
): Promise<JobImage | string> {
  const end = Date.now() + fetchMs;
  for (let tries = 1; ; tries += 1) {
    const fetched = await fetchOnce(context, url, end - Date.now(), answerTimeoutMs, signal);
    signal.throwIfAborted();
    if (fetched instanceof Uint8Array) return await keepFetched(context, jobId, fetched);
    const pauseMs = pausesMs[tries - 1] ?? 0;
    if (!fetched.again || tries === maxTries || Date.now() + pauseMs >= end) {
      return `The image could not be loaded: ${fetched.message}`;
    }
    await delay(pauseMs, undefined, { signal });
  }
}

async function fetchOnce(
  { config, guard }: IntakeContext,
  url: string,
  totalMs: number,
  answerTimeoutMs: number,
  signal: AbortSignal,
): Promise<Uint8Array | { message: string; again: boolean }> {
  try {
    signal.throwIfAborted();
    const maxBytes = maxBytesOf(config);
    const options = { redirects: 3, maxBytes, totalMs, answerMs: answerTimeoutMs, signal };
    const answer = await guard.fetch(url, options);
    if (answer.status !== 200) {
      answer.body.destroy();
      const message = `${new URL(url).host} answered ${answer.status}.`;
      return { message, again: answer.status >= 500 || answer.status === 429 };
    }
    return Buffer.concat(await answer.body.toArray());
  } catch (thrown) {
    if (!(thrown instanceof GuardError)) throw thrown;
    return { message: thrown.message, again: thrown.reason === 'unreachable' };
  }
}

async function keepFetched(
  { config, blobs }: IntakeContext,
  jobId: string,
  bytes: Uint8Array,
): Promise<JobImage | string> {
  let type: string;
  try {
    type = checked(bytes, config);
  } catch (thrown) {
    return `The image cannot be used: ${sentenceOf(thrown)}`;
  }
  const key = inputKey(jobId);
  await blobs.put(key, bytes, { type, maxBytes: maxBytesOf(config) });
  return { key, type, bytes: bytes.length };
}

/** The type that the bytes have. @throws ApiError `INVALID_IMAGE` */
function checked(bytes: Uint8Array, config: Config): string {
  if (bytes.length > maxBytesOf(config)) {
    throw unusable(`The image is larger than ${maxBytesOf(config)} bytes.`);
  }
  return imageType(checkImage(bytes));
}

/** Largest image, in bytes: the setting, within what every part of Kinora takes. */
function maxBytesOf(config: Config): number {
  return Math.min(config.KINORA_MAX_IMAGE_BYTES, maxImageBytes);
}

function unusable(sentence: string): ApiError {
  return invalidField('image', sentence, { code: 'INVALID_IMAGE' });
}

import { createHash, randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ApiError } from '../../../lib/contract/v3';
import { idForm } from '../../jobs/reader';
import type { UploadRow } from '../../store/schema';
import { keyOf, temporaryFile, tooLarge, withLocalFile, writeNewFile } from '../blobs';
import type { FilesContext } from '../context';
import { bodyOf, invalidField, lengthOf, sendData } from '../requests';
import { type Asked, checkVideo } from './check';

/** Content type of every video. */
export const videoType = 'video/mp4';

/** A video as its uploader names it. */
export interface OutputName {
  readonly jobId: string;
  /** Tells the attempts of a job apart. */
  readonly leaseToken: string;
  /** Hex, as declared. */
  readonly sha256: string;
}

/** @throws ApiError `NOT_FOUND` for what is no id, `INVALID_PARAMETER` for what is no SHA-256 */
export function outputName(jobId: string, leaseToken: string, sha256: string): OutputName {
  if (!idForm.test(jobId)) throw new ApiError('NOT_FOUND');
  if (!/^[0-9a-f]{64}$/.test(sha256)) {
    throw invalidField('sha256', 'sha256 must be 64 lower-case hex characters.');
  }
  return { jobId, leaseToken, sha256 };
}

/** Blob key of a video, different for each lease and content. The token itself may not be seen. */
export function outputKey({ jobId, leaseToken, sha256 }: OutputName): string {
  const lease = createHash('sha256').update(leaseToken).digest('hex').slice(0, 16);
  return keyOf('outputs', jobId, `-${lease}-${sha256.slice(0, 32)}`);
}

/**
 * Answers the PUT of a whole video, which is stored for all nodes: any of them may complete the job. The same bytes
 * again are no error. Until then it is an upload that expires with the time of an attempt.
 *
 * @throws ApiError `TOO_LARGE`, `INVALID_PARAMETER` for a body that breaks off, `OUTPUT_REJECTED` for another hash,
 *   `STORAGE_DOWN`
 */
export async function receiveVideo(
  { config, blobs, rows, space, temporary }: FilesContext,
  request: IncomingMessage,
  response: ServerResponse,
  name: OutputName,
  sender: Pick<UploadRow, 'owner' | 'keyId'>,
): Promise<void> {
  const { KINORA_MAX_VIDEO_BYTES: maxBytes, KINORA_ATTEMPT_SECONDS: seconds } = config;
  const announced = lengthOf(request) ?? 0;
  if (announced > maxBytes) throw tooLarge(maxBytes);
  const blobKey = outputKey(name);
  if (await blobs.stat(blobKey)) {
    request.resume();
    sendData(response, {});
    return;
  }
  await space.requireFor(announced);
  const file = temporaryFile(temporary);
  try {
    const { bytes, sha256 } = await writeNewFile(file, bodyOf(request), maxBytes);
    if (sha256 !== name.sha256) {
      throw new ApiError('OUTPUT_REJECTED', 'The received bytes have another SHA-256.');
    }
    // First the row, by which the sweep finds a video whose job never ends with it.
    await rows.insert({
      id: randomBytes(16).toString('hex'),
      ...sender,
      filename: filenameOf(name),
      contentType: videoType,
      bytes,
      sha256,
      blobKey,
      expiresAt: new Date(Date.now() + seconds * 1000),
    });
    await blobs.putFile(blobKey, file, videoType);
  } finally {
    await rm(file, { force: true });
  }
  sendData(response, {});
}

/**
 * An uploaded video, checked. One that does not fit the request is removed.
 *
 * @param job what was asked for; its `outputKey` is that of the video where it was taken before
 * @param declared length of the video by its sender
 * @throws ApiError `OUTPUT_REJECTED`; `CONFLICT` when it is not there
 */
export async function takeVideo(
  { blobs, temporary }: Pick<FilesContext, 'blobs' | 'temporary'>,
  name: OutputName,
  job: { readonly input: Asked; readonly outputKey: string | null },
  declared?: number,
): Promise<{ key: string; bytes: number }> {
  const key = outputKey(name);
  const stored = await blobs.stat(key);
  if (!stored) throw new ApiError('CONFLICT', 'The video has not been uploaded as a whole.');
  const { bytes } = stored;
  // The same completion once more, after its answer was lost.
  if (job.outputKey === key) return { key, bytes };
  try {
    if (declared !== undefined && bytes !== declared) {
      throw new ApiError('OUTPUT_REJECTED', `It has ${bytes} bytes and not ${declared}.`);
    }
    await withLocalFile(blobs, key, temporary, (file) => checkVideo(file, job.input));
  } catch (thrown) {
    if (thrown instanceof ApiError && thrown.code === 'OUTPUT_REJECTED') await blobs.remove(key);
    throw thrown;
  }
  return { key, bytes };
}

/** The name of an uploaded video among the uploads of its owner. */
export function filenameOf({ jobId }: Pick<OutputName, 'jobId'>): string {
  return `${jobId}.mp4`;
}

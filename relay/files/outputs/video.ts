import { createHash, randomBytes } from 'node:crypto';
import { openAsBlob } from 'node:fs';
import { KinoraError } from '../../../lib/contract';
import { formatOfFile, mostFramesPerSecond } from '../../../lib/contract/request';
import { ApiError, type PredictionInput } from '../../../lib/contract/v3';
import type { VideoFacts } from '../../../lib/video/inspect';
import { followSamples } from '../../../lib/video/samples';
import { idForm } from '../../jobs/queries';
import type { UploadRow } from '../../store/schema';
import { keyOf, tooLarge, withLocalFile, withTemporaryFile } from '../blobs';
import {
  bodyOf,
  type FileHandler,
  type FilesContext,
  invalidField,
  lengthOf,
  queryOf,
} from '../requests';
import { serveBlob } from '../serving';

const videoType = 'video/mp4';

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

/** The name of an uploaded video among the uploads of its owner. */
export const filenameOf = (jobId: string): string => `${jobId}.mp4`;

/** `PUT /api/worker/jobs/{id}/output?lease_token=…&sha256=…`: the video of a worker that has the job's lease. */
export const putOutput: FileHandler = async (context, { request, caller, params }) => {
  const { id = '' } = params;
  const { keyId } = caller;
  const query = queryOf(request);
  const leaseToken = query.get('lease_token') ?? '';
  const name = outputName(id, leaseToken, query.get('sha256') ?? '');
  if (leaseToken === '' || leaseToken.length > 100) {
    throw invalidField('lease_token', 'lease_token is required.');
  }
  const { owner } = await context.jobs.lease(id, leaseToken, keyId);
  return await receiveVideo(context, request, name, { owner, keyId });
};

/**
 * Answers the PUT of a whole video, which is stored for all nodes: any of them may complete the job. The same bytes
 * again are no error. Until then it is an upload that expires with the time of an attempt.
 *
 * @throws ApiError `TOO_LARGE`, `INVALID_PARAMETER` for a body that breaks off, `OUTPUT_REJECTED` for another hash,
 *   `STORAGE_DOWN`
 */
export async function receiveVideo(
  { config, blobs, rows, requireSpace, temporary }: FilesContext,
  request: Request,
  name: OutputName,
  sender: Pick<UploadRow, 'owner' | 'keyId'>,
): Promise<object> {
  const { KINORA_MAX_VIDEO_BYTES: maxBytes, KINORA_ATTEMPT_SECONDS: seconds } = config;
  const announced = lengthOf(request) ?? 0;
  if (announced > maxBytes) throw tooLarge(maxBytes);
  const blobKey = outputKey(name);
  if (await blobs.stat(blobKey)) return {};
  await requireSpace(announced);
  await withTemporaryFile(temporary, bodyOf(request), maxBytes, async (file, written) => {
    if (written.sha256 !== name.sha256) throw rejected('The received bytes have another SHA-256.');
    // First the row, by which the sweep finds a video whose job never ends with it.
    await rows.insert({
      id: randomBytes(16).toString('hex'),
      ...sender,
      ...written,
      filename: filenameOf(name.jobId),
      contentType: videoType,
      blobKey,
      expiresAt: new Date(Date.now() + seconds * 1000),
    });
    await blobs.putFile(blobKey, file, videoType);
  });
  return {};
}

/**
 * An uploaded video, checked. One that does not fit the request is removed.
 *
 * @param asked the request
 * @param declared length of the video by its sender
 * @throws ApiError `OUTPUT_REJECTED`; `CONFLICT` when it is not there
 */
export async function takeVideo(
  context: FilesContext,
  name: OutputName,
  asked: Asked,
  declared?: number,
): Promise<{ key: string; bytes: number }> {
  const { blobs } = context;
  const key = outputKey(name);
  const stored = await blobs.stat(key);
  if (!stored) throw new ApiError('CONFLICT', 'The video has not been uploaded as a whole.');
  const { bytes } = stored;
  try {
    if (declared !== undefined && bytes !== declared) {
      throw rejected(`It has ${bytes} bytes and not ${declared}.`);
    }
    await withLocalFile(context, key, (file) => checkVideo(file, asked));
  } catch (thrown) {
    if (thrown instanceof ApiError && thrown.code === 'OUTPUT_REJECTED') await blobs.remove(key);
    throw thrown;
  }
  return { key, bytes };
}

/**
 * `GET /files/video/{id}.mp4`: the video, for holders of its signed address, without a key. A wrong signature
 * and an unknown id give the same answer; an expired address says that it expired.
 */
export const getVideo: FileHandler = async (context, { request, params: { file = '' } }) => {
  const id = /^([0-9a-f]{32})\.mp4$/.exec(file)?.[1];
  const job = id ? await context.jobs.get(id) : null;
  const end =
    job?.outputNonce && context.links.verify('video', job.id, job.outputNonce, queryOf(request));
  if (!job || !end) throw new ApiError('NOT_FOUND');
  const secondsLeft = Math.floor((end.getTime() - Date.now()) / 1000);
  if (!job.outputKey || secondsLeft <= 0) {
    throw new ApiError('NOT_FOUND', 'This video has expired and was removed.');
  }
  return await serveBlob(request, context.blobs, job.outputKey, {
    type: videoType,
    filename: `${job.id}.mp4`,
    tag: job.outputSha256 ?? job.id,
    readers: 'cross-origin',
    // Short, so that a revoked link soon stops working in browsers that have the video.
    maxAge: Math.min(300, secondsLeft),
  });
};

export type Asked = Pick<PredictionInput, 'size' | 'duration' | 'upscale' | 'smooth'>;

const toleranceSeconds = 0.5;

/**
 * Checks that a file is the requested video: an MP4 with one H.264 track, width and height
 * exactly, at the model's own frame rate, length within half a second, and every sample inside the file.
 *
 * @throws ApiError `OUTPUT_REJECTED` with what is wrong
 */
export async function checkVideo(file: string, asked: Asked): Promise<VideoFacts> {
  const blob = await openAsBlob(file);
  const { width, height, frameRate } = formatOfFile(asked, mostFramesPerSecond);
  const mostFrames = 1 + (asked.duration + toleranceSeconds) * frameRate;
  const read = async () => {
    const { samples } = await followSamples(blob, mostFrames);
    // Loaded with the first video: the MP4 reader would cost a start 0.2 s.
    const { inspectVideo } = await import('../../../lib/video/inspect');
    return { samples, facts: await inspectVideo(blob) };
  };
  const { samples, facts } = await read().catch((thrown: unknown) => {
    if (thrown instanceof KinoraError) throw rejected(thrown.message, thrown);
    if (!(thrown instanceof Error)) throw thrown;
    throw rejected(`This is not a readable MP4: ${thrown.message}.`, thrown);
  });
  if (facts.width !== width || facts.height !== height) {
    throw rejected(`It is ${facts.width}×${facts.height} and not ${width}×${height}.`);
  }
  if (facts.frames !== samples) throw rejected('Its samples do not each have a time.');
  const seconds = asked.duration + 1 / facts.frameRate;
  if (!(Math.abs(facts.durationSeconds - seconds) <= toleranceSeconds)) {
    throw rejected(`It lasts ${facts.durationSeconds} s and not ${seconds.toFixed(2)} s.`);
  }
  return facts;
}

function rejected(sentence: string, cause?: unknown): ApiError {
  return new ApiError('OUTPUT_REJECTED', sentence, { cause });
}

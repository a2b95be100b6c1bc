import { rm } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ApiError, type Completion, type UploadAnswer } from '../../../lib/contract/v3';
import type { NodeHandler } from '../../http/router';
import type { JobRow } from '../../store/schema';
import { tooLarge, withLocalFile } from '../blobs';
import type { FilesContext } from '../context';
import { authenticate, invalidField, lengthOf, queryOf, sendData } from '../requests';
import { serveBlob } from '../serving';
import { checkVideo } from './check';
import { type OutputName, outputKey } from './parts';

const videoType = 'video/mp4';

/**
 * `PUT /api/worker/jobs/{id}/output?lease_token=…&sha256=…`: a video, whole or the part that is missing.
 *
 * Parts are files of the node that received them. Another node has none (`HEAD` answers offset 0), and the
 * worker starts again there. A whole video goes to the blob store at once, which all nodes share, so that
 * `complete` may go to any of them. {@link takeOutput} checks that it is the right video.
 */
export function putOutput(context: FilesContext): NodeHandler {
  return async (request, response, { id = '' }) => {
    const name = await readLease(context, request, response, id);
    await receiveVideo(context, request, response, name, () => store(context, name));
  };
}

/**
 * Answers the PUT of a video or of its missing part.
 *
 * @param onWhole moves the whole upload to the blob store
 * @throws ApiError `TOO_LARGE`, `CONFLICT` for a gap, `INVALID_PARAMETER`, `STORAGE_DOWN`
 */
export async function receiveVideo(
  context: FilesContext,
  request: IncomingMessage,
  response: ServerResponse,
  name: OutputName,
  onWhole: () => Promise<void>,
): Promise<void> {
  const { KINORA_MAX_VIDEO_BYTES: maxBytes } = context.config;
  const part = readPart(request);
  if (part.total !== null && part.total > maxBytes) throw tooLarge(maxBytes);

  const stored = await context.blobs.stat(outputKey(name));
  if (stored) {
    request.resume();
    answer(response, { received: stored.bytes, complete: true });
    return;
  }
  const limit = Math.min(part.end ?? maxBytes, maxBytes);
  await context.space.requireFor((part.total ?? part.first) - part.first);
  const received = await context.parts.write(name, request, part.first, limit);
  const whole = part.total === null || received >= part.total;
  if (whole) await onWhole();
  answer(response, { received, complete: whole });
}

/** `HEAD` on the same address: the number of received bytes, in `Upload-Offset`. */
export function headOutput(context: FilesContext): NodeHandler {
  return async (request, response, { id = '' }) => {
    await tellReceived(context, response, await readLease(context, request, response, id));
  };
}

/** Answers HEAD with the number of received bytes, and whether the video is stored. */
export async function tellReceived(
  context: FilesContext,
  response: ServerResponse,
  name: OutputName,
): Promise<void> {
  const stored = await context.blobs.stat(outputKey(name));
  const received = stored?.bytes ?? (await context.parts.received(name));
  response.writeHead(200, {
    'Upload-Offset': String(received),
    'Upload-Complete': stored ? '?1' : '?0',
    'Cache-Control': 'no-store',
  });
  response.end();
}

/**
 * The uploaded video of a lease, checked. One that does not fit the request is removed.
 *
 * @throws ApiError `OUTPUT_REJECTED`; `CONFLICT` when it is not complete
 */
export function takeOutput({ blobs, temporary }: FilesContext) {
  return async (
    job: JobRow,
    { lease_token, sha256, bytes: declared }: Completion,
  ): Promise<{ key: string; bytes: number }> => {
    const key = outputKey({ jobId: job.id, leaseToken: lease_token, sha256 });
    const stored = await blobs.stat(key);
    if (!stored) throw new ApiError('CONFLICT', 'The video has not been uploaded as a whole.');
    const { bytes } = stored;
    // The same completion once more, after its answer was lost.
    if (job.outputKey === key) return { key, bytes };
    try {
      if (bytes !== declared) {
        throw new ApiError('OUTPUT_REJECTED', `It has ${bytes} bytes and not ${declared}.`);
      }
      await withLocalFile(blobs, key, temporary, (file) => checkVideo(file, job.input));
    } catch (thrown) {
      if (thrown instanceof ApiError && thrown.code === 'OUTPUT_REJECTED') await blobs.remove(key);
      throw thrown;
    }
    return { key, bytes };
  };
}

/** Moves a whole upload to the blob store, if its lease is still valid. */
async function store(context: FilesContext, name: OutputName): Promise<void> {
  const file = await context.parts.take(name);
  if (file === null) return;
  try {
    await context.jobs.lease(name.jobId, name.leaseToken);
    await context.parts.remember(name);
    await context.blobs.putFile(outputKey(name), file, videoType);
    await keepIfLeased(context, name);
  } finally {
    await rm(file, { force: true });
  }
}

/**
 * Removes a video whose lease was lost while it was being stored: a sweep that ran before it was there would
 * not find it again.
 *
 * @throws ApiError `LEASE_LOST`
 */
async function keepIfLeased({ jobs, blobs, parts }: FilesContext, name: OutputName): Promise<void> {
  try {
    await jobs.lease(name.jobId, name.leaseToken);
  } catch (thrown) {
    // For the next sweep, in case the removal below fails.
    await parts.remember(name).catch(() => undefined);
    const key = outputKey(name);
    // Sent twice: the job has been completed with these bytes.
    if ((await jobs.get(name.jobId))?.outputKey === key) return;
    if (thrown instanceof ApiError && thrown.code === 'LEASE_LOST') await blobs.remove(key);
    throw thrown;
  }
}

/**
 * `GET /files/video/{id}.mp4`: the video, for holders of its signed address, without a key. A wrong signature
 * and an unknown id give the same answer; an expired address says that it expired.
 */
export function getVideo(context: FilesContext): NodeHandler {
  return async (request, response, { file = '' }) => {
    const id = /^([0-9a-f]{32})\.mp4$/.exec(file)?.[1];
    const job = id ? await context.jobs.get(id) : null;
    const end =
      job?.outputNonce && context.links.verify('video', job.id, job.outputNonce, queryOf(request));
    if (!job || !end) throw new ApiError('NOT_FOUND');
    const secondsLeft = Math.floor((end.getTime() - Date.now()) / 1000);
    if (!job.outputKey || secondsLeft <= 0) {
      throw new ApiError('NOT_FOUND', 'This video has expired and was removed.');
    }
    await serveBlob(request, response, context.blobs, job.outputKey, {
      type: 'video/mp4',
      filename: `${job.id}.mp4`,
      tag: job.outputSha256 ?? job.id,
      readers: 'cross-origin',
      // Short, so that a revoked link soon stops working in browsers that have the video.
      maxAge: Math.min(300, secondsLeft),
    });
  };
}

function answer(response: ServerResponse, body: UploadAnswer): void {
  response.setHeader('Upload-Offset', String(body.received));
  sendData(response, body);
}

/** The upload that a request names, if the caller has its lease. @throws ApiError `LEASE_LOST` */
async function readLease(
  context: FilesContext,
  request: IncomingMessage,
  response: ServerResponse,
  id: string,
): Promise<OutputName> {
  const caller = await authenticate(context, request, response, 'worker');
  const name = readName(request, id);
  const job = await context.jobs.lease(id, name.leaseToken);
  if (job.workerToken !== caller.keyId) throw new ApiError('LEASE_LOST');
  return name;
}

function readName(request: IncomingMessage, jobId: string): OutputName {
  const query = queryOf(request);
  const leaseToken = query.get('lease_token') ?? '';
  const sha256 = query.get('sha256') ?? '';
  if (!/^[0-9a-f]{32}$/.test(jobId)) throw new ApiError('NOT_FOUND');
  if (leaseToken === '' || leaseToken.length > 100) {
    throw invalidField('lease_token', 'lease_token is required.');
  }
  if (!/^[0-9a-f]{64}$/.test(sha256)) {
    throw invalidField('sha256', 'sha256 must be 64 lower-case hex characters.');
  }
  return { jobId, leaseToken, sha256 };
}

/**
 * The place of the body: `Content-Range: bytes first-last/total` (RFC 9110, 14.4), or all of the file.
 *
 * @returns `end` is the byte after the last one; `total` is null where neither header gives it
 */
function readPart(request: IncomingMessage): {
  first: number;
  end: number | null;
  total: number | null;
} {
  const header = request.headers['content-range'];
  const length = lengthOf(request);
  if (header === undefined) return { first: 0, end: length, total: length };
  const numbers = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15})$/.exec(header);
  const [first = 0, last = 0, total = 0] = numbers?.slice(1).map(Number) ?? [];
  const fits = length === null || length === last - first + 1;
  if (!numbers || last < first || last >= total || !fits) {
    throw invalidField('Content-Range', 'Content-Range must be "bytes first-last/total".');
  }
  return { first, end: last + 1, total };
}

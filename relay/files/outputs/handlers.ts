import { rm } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ApiError, type Completion, type UploadAnswer } from '../../../lib/contract/v3';
import type { NodeHandler } from '../../http/router';
import type { JobRow } from '../../store/schema';
import { tooLarge, withLocalFile } from '../blobs';
import type { FilesContext } from '../context';
import { authenticate, invalidField, lengthOf, queryOf, sendData } from '../requests';
import { serveBlob } from '../serving';
import { type Asked, checkVideo } from './check';
import { type OutputName, outputKey, outputName } from './parts';

const videoType = 'video/mp4';

/**
 * `PUT` and `HEAD /api/worker/jobs/{id}/output?lease_token=…&sha256=…`: a video, whole or the part that is missing.
 *
 * Parts are files of the node that received them. Another node has none (`HEAD` answers offset 0), and the
 * worker starts again there. A whole video goes to the blob store at once, which all nodes share, so that
 * `complete` may go to any of them. {@link takeOutput} checks that it is the right video.
 */
export function outputRoutes(context: FilesContext) {
  const { jobs } = context;
  return videoRoutes(context, {
    name: (request, response, id) => readLease(context, request, response, id),
    beforeStored: ({ jobId, leaseToken }) => jobs.lease(jobId, leaseToken),
    afterStored: (name) => keepIfLeased(context, name),
  });
}

/** Who may upload a video, and what else its storing needs. */
interface Uploader {
  name(request: IncomingMessage, response: ServerResponse, id: string): Promise<OutputName>;
  beforeStored?(name: OutputName): Promise<unknown>;
  afterStored?(name: OutputName): Promise<void>;
}

/** The handlers of an address that takes videos in parts. */
export function videoRoutes(
  context: FilesContext,
  uploader: Uploader,
): { readonly put: NodeHandler; readonly head: NodeHandler } {
  const { blobs, parts } = context;

  /** Moves a whole upload to the blob store. */
  async function store(name: OutputName): Promise<void> {
    const file = await parts.take(name);
    if (file === null) return;
    try {
      await uploader.beforeStored?.(name);
      await parts.remember(name);
      await blobs.putFile(outputKey(name), file, videoType);
      await uploader.afterStored?.(name);
    } finally {
      await rm(file, { force: true });
    }
  }

  return {
    async put(request, response, { id = '' }) {
      const name = await uploader.name(request, response, id);
      await receiveVideo(context, request, response, name, () => store(name));
    },
    /** The number of received bytes, in `Upload-Offset`, and whether the video is stored. */
    async head(request, response, { id = '' }) {
      const name = await uploader.name(request, response, id);
      const stored = await blobs.stat(outputKey(name));
      const received = stored?.bytes ?? (await parts.received(name));
      response.writeHead(200, {
        'Upload-Offset': String(received),
        'Upload-Complete': stored ? '?1' : '?0',
        'Cache-Control': 'no-store',
      });
      response.end();
    },
  };
}

/**
 * Answers the PUT of a video or of its missing part.
 *
 * @param onWhole moves the whole upload to the blob store
 * @throws ApiError `TOO_LARGE`, `CONFLICT` for a gap, `INVALID_PARAMETER`, `STORAGE_DOWN`
 */
async function receiveVideo(
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

/** The uploaded video of a lease, as {@link takeVideo}. */
export function takeOutput(context: FilesContext) {
  return async (
    job: JobRow,
    { lease_token, sha256, bytes }: Completion,
  ): Promise<{ key: string; bytes: number }> =>
    await takeVideo(context, { jobId: job.id, leaseToken: lease_token, sha256 }, job, bytes);
}

/**
 * An uploaded video, checked. One that does not fit the request is removed.
 *
 * @param job what was asked for; its `outputKey` is that of the video where it was taken before
 * @param declared length of the video by its sender
 * @throws ApiError `OUTPUT_REJECTED`; `CONFLICT` when it is not complete
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
  const query = queryOf(request);
  const leaseToken = query.get('lease_token') ?? '';
  const name = outputName(id, leaseToken, query.get('sha256') ?? '');
  if (leaseToken === '' || leaseToken.length > 100) {
    throw invalidField('lease_token', 'lease_token is required.');
  }
  const job = await context.jobs.lease(id, leaseToken);
  if (job.workerToken !== caller.keyId) throw new ApiError('LEASE_LOST');
  return name;
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

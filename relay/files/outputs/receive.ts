import { rm } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ApiError, type UploadAnswer } from '../../../lib/contract/v3';
import type { Config } from '../../config';
import type { BlobStore, Files, Jobs, NodeHandler } from '../../relay';
import type { JobRow } from '../../store/schema';
import { tooLarge, withLocalFile } from '../blobs';
import { type Access, invalidField, lengthOf, queryOf, sendData } from '../http';
import type { Space } from '../space';
import { checkVideo } from './check';
import { type OutputName, type OutputParts, outputKey } from './parts';

const videoType = 'video/mp4';

/** What the handlers of a worker's upload work with. */
export interface OutputRoom {
  readonly config: Config;
  readonly blobs: BlobStore;
  readonly jobs: Pick<Jobs, 'lease' | 'get'>;
  readonly parts: OutputParts;
  readonly space: Pick<Space, 'requireFor'>;
  readonly access: Access;
  /** Folder for what is not yet whole. */
  readonly temporary: string;
}

/**
 * `PUT /api/worker/jobs/{id}/output?lease_token=…&sha256=…`: a video, whole or the part that is missing.
 *
 * Parts lie on the node that got them. A node that has none says so (`HEAD` answers offset 0) and the
 * worker starts over there. A video that is whole goes to the blob store at once, which all nodes share:
 * `complete` may then go to any of them. Only {@link takeOutput} looks whether it is the right video.
 */
export function putOutput(room: OutputRoom): NodeHandler {
  return async (request, response, { id = '' }) => {
    const name = await readLease(room, request, id);
    const { KINORA_MAX_VIDEO_BYTES: maxBytes } = room.config;
    const part = readPart(request);
    if (part.total !== null && part.total > maxBytes) throw tooLarge(maxBytes);

    const stored = await room.blobs.stat(outputKey(name));
    if (stored) {
      request.resume();
      answer(response, { received: stored.bytes, complete: true });
      return;
    }
    const limit = Math.min(part.end ?? maxBytes, maxBytes);
    await room.space.requireFor((part.total ?? part.first) - part.first);
    const received = await room.parts.write(name, request, part.first, limit);
    const whole = part.total === null || received >= part.total;
    if (whole) await store(room, name);
    answer(response, { received, complete: whole });
  };
}

/** `HEAD` on the same address: how much is there, in `Upload-Offset`. */
export function headOutput(room: OutputRoom): NodeHandler {
  return async (request, response, { id = '' }) => {
    const name = await readLease(room, request, id);
    const stored = await room.blobs.stat(outputKey(name));
    const received = stored?.bytes ?? (await room.parts.received(name));
    response.writeHead(200, {
      'Upload-Offset': String(received),
      'Upload-Complete': stored ? '?1' : '?0',
      'Cache-Control': 'no-store',
    });
    response.end();
  };
}

/**
 * The uploaded video of a lease, looked into. What is not the video that was asked for is removed.
 *
 * @throws ApiError `OUTPUT_REJECTED`; `CONFLICT` when it is not all there
 */
export function takeOutput({
  blobs,
  temporary,
}: Pick<OutputRoom, 'blobs' | 'temporary'>): Files['takeOutput'] {
  return async (job, { lease_token, sha256, bytes: declared }) => {
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
      await withLocalFile(blobs, key, temporary, (file) => checkVideo(file, askedOf(job)));
    } catch (thrown) {
      if (thrown instanceof ApiError && thrown.code === 'OUTPUT_REJECTED') await blobs.remove(key);
      throw thrown;
    }
    return { key, bytes };
  };
}

function askedOf({ input }: JobRow): { size: JobRow['input']['size']; duration: number } {
  return { size: input.size, duration: input.duration };
}

/** Hands a whole upload to the blob store, if its lease still stands after all that time. */
async function store(room: OutputRoom, name: OutputName): Promise<void> {
  const file = await room.parts.take(name);
  if (file === null) return;
  try {
    await room.jobs.lease(name.jobId, name.leaseToken);
    await room.parts.remember(name);
    await room.blobs.putFile(outputKey(name), file, videoType);
    await keepOfLease(room, name);
  } finally {
    await rm(file, { force: true });
  }
}

/**
 * A lease that was lost while its video was on the way: a sweep may have been there before the video was,
 * and none would look for it again.
 *
 * @throws ApiError `LEASE_LOST`
 */
async function keepOfLease({ jobs, blobs, parts }: OutputRoom, name: OutputName): Promise<void> {
  try {
    await jobs.lease(name.jobId, name.leaseToken);
  } catch (thrown) {
    // For the next sweep, where this goes no further.
    await parts.remember(name).catch(() => undefined);
    const key = outputKey(name);
    // Sent twice: the job is complete by now with these very bytes.
    if ((await jobs.get(name.jobId))?.outputKey === key) return;
    if (thrown instanceof ApiError && thrown.code === 'LEASE_LOST') await blobs.remove(key);
    throw thrown;
  }
}

function answer(response: ServerResponse, body: UploadAnswer): void {
  response.setHeader('Upload-Offset', String(body.received));
  sendData(response, body);
}

/** Whose upload it is, if the lease is that worker's. @throws ApiError `LEASE_LOST` */
async function readLease(
  room: OutputRoom,
  request: IncomingMessage,
  id: string,
): Promise<OutputName> {
  const caller = await room.access.worker(request);
  const name = readName(request, id);
  const job = await room.jobs.lease(id, name.leaseToken);
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
 * Where the body belongs: `Content-Range: bytes first-last/total` (RFC 9110, 14.4), or all of the file.
 *
 * @returns `end` is the byte after the last one; `total` is null where neither header tells
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

import { ApiError, type Completion } from '../../../lib/contract/v3';
import type { NodeHandler } from '../../http/router';
import type { JobRow } from '../../store/schema';
import type { FilesContext } from '../context';
import { authenticate, invalidField, queryOf } from '../requests';
import { serveBlob } from '../serving';
import { outputName, receiveVideo, takeVideo, videoType } from './store';

/** `PUT /api/worker/jobs/{id}/output?lease_token=…&sha256=…`: the video of a worker that has the job's lease. */
export function putOutput(context: FilesContext): NodeHandler {
  return async (request, response, { id = '' }) => {
    const { keyId } = await authenticate(context, request, response, 'worker');
    const query = queryOf(request);
    const leaseToken = query.get('lease_token') ?? '';
    const name = outputName(id, leaseToken, query.get('sha256') ?? '');
    if (leaseToken === '' || leaseToken.length > 100) {
      throw invalidField('lease_token', 'lease_token is required.');
    }
    const { owner } = await context.jobs.lease(id, leaseToken, keyId);
    await receiveVideo(context, request, response, name, { owner, keyId });
  };
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
      type: videoType,
      filename: `${job.id}.mp4`,
      tag: job.outputSha256 ?? job.id,
      readers: 'cross-origin',
      // Short, so that a revoked link soon stops working in browsers that have the video.
      maxAge: Math.min(300, secondsLeft),
    });
  };
}

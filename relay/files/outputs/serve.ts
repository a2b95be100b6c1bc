import { ApiError } from '../../../lib/contract/v3';
import type { BlobStore, Jobs, NodeHandler } from '../../relay';
import { queryOf } from '../http';
import type { SignedLinks } from '../links';
import { serveBlob } from '../serving';

/**
 * `GET /files/video/{id}.mp4`: the video, for whoever has its signed address; no key is asked for. A wrong
 * signature and an unknown id answer the same; a right one whose time is over says so.
 */
export function getVideo(room: {
  readonly blobs: BlobStore;
  readonly links: SignedLinks;
  readonly jobs: Pick<Jobs, 'get'>;
}): NodeHandler {
  return async (request, response, { file = '' }) => {
    const id = /^([0-9a-f]{32})\.mp4$/.exec(file)?.[1];
    const job = id ? await room.jobs.get(id) : null;
    const end =
      job?.outputNonce && room.links.verify('video', job.id, job.outputNonce, queryOf(request));
    if (!job || !end) throw new ApiError('NOT_FOUND');
    const secondsLeft = Math.floor((end.getTime() - Date.now()) / 1000);
    if (!job.outputKey || secondsLeft <= 0) {
      throw new ApiError('NOT_FOUND', 'This video is no longer kept: its time was over.');
    }
    await serveBlob(request, response, room.blobs, job.outputKey, {
      type: 'video/mp4',
      filename: `${job.id}.mp4`,
      tag: job.outputSha256 ?? job.id,
      readers: 'cross-origin',
      // Short: a revoked link should stop working in browsers that have the video, too.
      maxAge: Math.min(300, secondsLeft),
    });
  };
}

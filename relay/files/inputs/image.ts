import { ApiError } from '../../../lib/contract/v3';
import type { BlobStore, Jobs, NodeHandler } from '../../relay';
import type { JobRow } from '../../store/schema';
import { queryOf } from '../http';
import { type LinkPurpose, leaseNonce, type SignedLinks } from '../links';
import { serveBlob } from '../serving';

/** What the handlers of a job's files work with. */
export interface InputRoom {
  readonly blobs: BlobStore;
  readonly links: SignedLinks;
  readonly jobs: Pick<Jobs, 'get'>;
}

/**
 * The running job that a signed address is for. The signature holds the attempt's lease: an address of a
 * lease that was lost is worth nothing.
 *
 * @throws ApiError `NOT_FOUND`
 */
export async function runningJob(
  { links, jobs }: InputRoom,
  purpose: LinkPurpose,
  id: string,
  query: URLSearchParams,
): Promise<JobRow> {
  const job = /^[0-9a-f]{32}$/.test(id) ? await jobs.get(id) : null;
  const running = job?.status === 'processing' && job.leaseToken !== null ? job : null;
  const end = running && links.verify(purpose, id, leaseNonce(running), query);
  if (!running || !end || end.getTime() <= Date.now()) throw new ApiError('NOT_FOUND');
  return running;
}

/** `GET /files/jobs/{id}/image`: the still of a job, for the worker that has its lease. */
export function getJobImage(room: InputRoom): NodeHandler {
  return async (request, response, { id = '' }) => {
    const { image } = await runningJob(room, 'image', id, queryOf(request));
    if (!image) throw new ApiError('NOT_FOUND');
    await serveBlob(request, response, room.blobs, image.key, {
      type: image.type,
      filename: `${id}.${image.type.slice(image.type.indexOf('/') + 1)}`,
      tag: id,
      readers: 'same-origin',
      maxAge: 0,
    });
  };
}

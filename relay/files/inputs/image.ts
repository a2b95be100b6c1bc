import { ApiError } from '../../../lib/contract/v3';
import type { NodeHandler } from '../../http/router';
import { type ClaimedJob, isClaimed } from '../../jobs';
import type { FilesContext } from '../context';
import { type LinkPurpose, leaseNonce } from '../links';
import { queryOf } from '../requests';
import { serveBlob } from '../serving';

/**
 * The running job that a signed address is for. The signature covers the attempt's lease: the address
 * ends with the lease.
 *
 * @throws ApiError `NOT_FOUND`
 */
export async function runningJob(
  { links, jobs }: FilesContext,
  purpose: LinkPurpose,
  id: string,
  query: URLSearchParams,
): Promise<ClaimedJob> {
  const job = await jobs.get(id);
  const isRunning = job && isClaimed(job) && links.isOpen(purpose, id, leaseNonce(job), query);
  if (!isRunning) throw new ApiError('NOT_FOUND');
  return job;
}

/** `GET /files/jobs/{id}/image`: the still of a job, for the worker that has its lease. */
export function getJobImage(context: FilesContext): NodeHandler {
  return async (request, response, { id = '' }) => {
    const { image } = await runningJob(context, 'image', id, queryOf(request));
    await serveBlob(request, response, context.blobs, image.key, {
      type: image.type,
      filename: `${id}.${image.type.slice(image.type.indexOf('/') + 1)}`,
      tag: id,
      readers: 'same-origin',
      maxAge: 0,
    });
  };
}

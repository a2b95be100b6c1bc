import { createHash } from 'node:crypto';
import { ApiError, type ImageField } from '../../../lib/contract/v3';
import type { NodeHandler } from '../../http/router';
import { type ClaimedJob, isClaimed } from '../../jobs';
import { imageColumns } from '../../store/schema';
import { keyOf } from '../blobs';
import type { FilesContext } from '../context';
import { type LinkPurpose, leaseNonce } from '../links';
import { queryOf } from '../requests';
import { serveBlob } from '../serving';

/** Where the server keeps an image that a job brought itself: the key of its bytes, and the id of its upload. */
export function ownImage(jobId: string, field: ImageField): { key: string; uploadId: string } {
  if (field === 'image') return { key: keyOf('inputs', jobId), uploadId: jobId };
  const uploadId = createHash('sha256').update(`${field} ${jobId}`).digest('hex').slice(0, 32);
  return { key: keyOf('inputs', jobId, '-last'), uploadId };
}

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

/** `GET /files/jobs/{id}/image` and `…/last_image`: an image of a job, for the worker that has its lease. */
export function getJobImage(context: FilesContext, field: ImageField): NodeHandler {
  return async (request, response, { id = '' }) => {
    const job = await runningJob(context, field, id, queryOf(request));
    const image = job[imageColumns[field]];
    if (!image) throw new ApiError('NOT_FOUND');
    await serveBlob(request, response, context.blobs, image.key, {
      type: image.type,
      filename: `${id}.${image.type.slice(image.type.indexOf('/') + 1)}`,
      tag: `${id}-${field}`,
      readers: 'same-origin',
      maxAge: 0,
    });
  };
}

import type { ApiPrediction } from '../../../lib/contract/v3';
import type { Links } from '../../files/links';
import type { ListedJob } from '../../jobs/queries';
import type { Relay } from '../../open';
import type { JobRow } from '../../store/schema';

/**
 * A job as the API tells it.
 *
 * @param options.position jobs that come before it; told only while it waits
 * @param options.withInput whether its parameters are told too
 */
export function describePrediction(
  links: Links,
  job: ListedJob,
  options: { position?: number; withInput?: boolean } = {},
): ApiPrediction {
  const output = job.status === 'completed' ? links.output(job) : null;
  const outputs = output === null ? [] : [output];
  // The bytes go after the retention; what was asked for and that it was made stays on record.
  const isGone = job.status === 'completed' && output === null;
  const error = isGone
    ? 'The video was kept as long as this server keeps videos, and is gone.'
    : '';
  return {
    id: job.id,
    model: job.model,
    outputs,
    urls: { get: links.prediction(job.id) },
    // What the checker says of them is another issue: until then they are unverified, told as false.
    has_nsfw_contents: outputs.map(() => false),
    status: job.status,
    created_at: job.createdAt.toISOString(),
    error: job.error || error,
    ...(job.code !== null && { code: job.code }),
    timings: { inference: job.inferenceMs },
    ...(job.status === 'created' &&
      options.position !== undefined && { queue_position: options.position }),
    ...(options.withInput && job.input !== null && { input: { ...job.input } }),
  };
}

/** The same for one job, with its place in the queue. */
export async function describeWithPosition(relay: Relay, job: JobRow): Promise<ApiPrediction> {
  const { links } = relay.files;
  if (job.status !== 'created') return describePrediction(links, job);
  return describePrediction(links, job, { position: await relay.jobs.position(job) });
}

/** Nothing changes any more. */
export function isTerminal(job: JobRow): boolean {
  return job.status === 'completed' || job.status === 'failed';
}

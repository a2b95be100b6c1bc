import { type ApiPrediction, describeContents } from '../../../lib/contract/v3';
import type { Links } from '../../files/links';
import type { ListedJob } from '../../jobs/queries';
import type { Relay } from '../../open';
import type { JobRow } from '../../store/schema';

/**
 * A job as a prediction of the API.
 *
 * @param options.position jobs that come before it; included only while it waits
 * @param options.withInput whether its parameters are included
 */
export function describePrediction(
  links: Links,
  job: ListedJob,
  options: { position?: number; withInput?: boolean } = {},
): ApiPrediction {
  const output = job.status === 'completed' ? links.output(job) : null;
  const outputs = output === null ? [] : [output];
  // The video is deleted after the retention; the record of the prediction stays.
  const isExpired = job.status === 'completed' && output === null;
  const error = isExpired ? 'The video has expired and was deleted.' : '';
  return {
    id: job.id,
    model: job.model,
    outputs,
    urls: { get: links.prediction(job.id) },
    ...describeContents(job, outputs),
    status: job.status,
    created_at: job.createdAt.toISOString(),
    error: job.error || error,
    ...(job.code !== null && { code: job.code }),
    timings: {
      inference: job.inferenceMs,
      ...(job.samplingMs !== null && { sampling: job.samplingMs }),
      ...(job.decodeMs !== null && { decode: job.decodeMs }),
    },
    ...(job.applied !== null && { applied: job.applied }),
    ...(job.status === 'created' &&
      options.position !== undefined && { queue_position: options.position }),
    ...describeRetry(job),
    ...(options.withInput && job.input !== null && { input: { ...job.input } }),
  };
}

/** Why the image of a waiting job is not there yet, and when it is tried again. */
function describeRetry(job: ListedJob): Pick<ApiPrediction, 'image_retry'> {
  const { status, ready, intakeError: error, intakeFailures: tries, intakeRetryAt: next } = job;
  if (status !== 'created' || ready || next === null) return {};
  return { image_retry: { error, tries, next_at: next.toISOString() } };
}

/** The same for one job, with its position in the queue. */
export async function describeWithPosition(relay: Relay, job: JobRow): Promise<ApiPrediction> {
  const { links } = relay.files;
  if (job.status !== 'created') return describePrediction(links, job);
  return describePrediction(links, job, { position: await relay.jobs.position(job) });
}

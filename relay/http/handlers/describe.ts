import {
  type ApiPrediction,
  describeContents,
  describeProgress,
  type WaitReason,
} from '../../../lib/contract/v3';
import type { Links } from '../../files/links';
import { canTake } from '../../jobs';
import type { ListedJob } from '../../jobs/queries';
import type { Relay } from '../../open';

/** What a prediction waits for, and how many come before it. */
interface Waiting {
  readonly for: WaitReason;
  readonly position: number;
}

/** @param waiting null unless it waits */
function describePrediction(links: Links, job: ListedJob, waiting: Waiting | null): ApiPrediction {
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
    seed: job.seed,
    progress: describeProgress(job),
    ...(waiting && { queue_position: waiting.position }),
    waiting_for: waiting?.for ?? null,
    ...describeRetry(job),
    ...(job.input !== null && { input: { ...job.input } }),
  };
}

/** Why the image of a waiting job is not there yet, and when it is tried again. */
function describeRetry(job: ListedJob): Pick<ApiPrediction, 'image_retry'> {
  const { status, ready, intakeError: error, intakeFailures: tries, intakeRetryAt: next } = job;
  if (status !== 'created' || ready || next === null) return {};
  return { image_retry: { error, tries, next_at: next.toISOString() } };
}

/** A job as a prediction of the API, with its parameters where they were read. */
export async function describeJob(relay: Relay, job: ListedJob): Promise<ApiPrediction> {
  return describePrediction(relay.files.links, job, await waitingOf(relay, job));
}

async function waitingOf(relay: Relay, job: ListedJob): Promise<Waiting | null> {
  if (job.status !== 'created') return null;
  const position = await relay.jobs.position(job);
  if (!job.ready) return { for: 'files', position };
  const workers = await relay.workers.connected();
  return { for: workers.some((worker) => canTake(worker, job)) ? 'queue' : 'worker', position };
}

import { type ApiPrediction, describeContents, describeProgress } from '../../../lib/contract/v3';
import { canTake } from '../../jobs';
import type { ListedJob } from '../../jobs/queries';
import type { Relay } from '../../open';

/** A job as a prediction of the API, with its parameters where they were read. */
export async function describeJob(relay: Relay, job: ListedJob): Promise<ApiPrediction> {
  const { links } = relay.files;
  const waiting = await waitingOf(relay, job);
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
    ...waiting,
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

/** What a prediction waits for, and how many come before it. */
async function waitingOf(relay: Relay, job: ListedJob) {
  if (job.status !== 'created') return { waiting_for: null };
  const position = { queue_position: await relay.jobs.position(job) };
  if (!job.ready) return { ...position, waiting_for: 'files' } as const;
  const workers = await relay.workers.connected();
  const isServed = workers.some((worker) => canTake(worker, job));
  return { ...position, waiting_for: isServed ? 'queue' : 'worker' } as const;
}

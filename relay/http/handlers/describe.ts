import { Readable } from 'node:stream';
import { formatBytes } from '../../../lib/contract';
import { type ApiPrediction, describeProgress } from '../../../lib/contract/v3';
import { describeInput, describeRecord } from '../../files/links';
import { canTake } from '../../jobs';
import type { ListedJob } from '../../jobs/queries';
import type { Relay } from '../../open';
import type { JobRow } from '../../store/schema';
import { streamed } from '../reply';

export async function describeJob(relay: Relay, job: ListedJob): Promise<ApiPrediction> {
  const waiting = await waitingOf(relay, job);
  const { intakeError: error, intakeFailures: tries, intakeRetryAt: next } = job;
  const isRetried = job.status === 'created' && !job.ready && next !== null;
  const { outputs, ...record } = describeRecord(job, relay.files.links);
  // The video is deleted after the retention; the record of the prediction stays.
  const isExpired = job.status === 'completed' && outputs.length === 0;
  return {
    outputs,
    ...record,
    ...(isExpired && record.error === '' && { error: 'The video has expired and was deleted.' }),
    timings: {
      inference: job.inferenceMs,
      ...(job.samplingMs !== null && { sampling: job.samplingMs }),
      ...(job.decodeMs !== null && { decode: job.decodeMs }),
    },
    ...(job.applied !== null && { applied: job.applied }),
    progress: describeProgress(job),
    ...waiting,
    // Why the image of a waiting job is not there yet, and when it is tried again.
    ...(isRetried && { image_retry: { error, tries, next_at: next.toISOString() } }),
    ...(job.input !== null && { input: describeInput(job.input, relay.files.links) }),
  };
}

/** The reason why a prediction waits, and how many come before it. */
async function waitingOf(relay: Relay, job: ListedJob) {
  if (job.status !== 'created') return { waiting_for: null };
  const position = { queue_position: await relay.jobs.position(job) };
  if (!job.ready) return { ...position, waiting_for: 'files' } as const;
  const workers = await relay.workers.connected();
  const isServed = workers.some((worker) => canTake(worker, job));
  return { ...position, waiting_for: isServed ? 'queue' : 'worker' } as const;
}

/**
 * The answer about one job. Where its submission asked for `enable_base64_output`, `outputs` has the video
 * itself, in base64 without a prefix, as in this API family; a video above `KINORA_MAX_BASE64_BYTES` stays a URL.
 */
export async function answerJob(relay: Relay, job: JobRow): Promise<ApiPrediction | Response> {
  const prediction = await describeJob(relay, job);
  const { outputKey, outputBytes } = job;
  const isUrl = job.input.enable_base64_output !== true || prediction.outputs.length === 0;
  if (isUrl || outputKey === null || outputBytes === null) return prediction;
  const limit = relay.config.KINORA_MAX_BASE64_BYTES;
  if (limit > 0 && outputBytes > limit) {
    const size = `${formatBytes(outputBytes)}, more than the ${formatBytes(limit)}`;
    return { ...prediction, error: `The video has ${size} for base64: outputs has its URL.` };
  }
  const text = jsonWith(prediction, async () => (await relay.files.blobs.read(outputKey)).body);
  const body = streamed(Readable.from(text, { objectMode: false }));
  return new Response(body, { headers: { 'Content-Type': 'application/json' } });
}

/** The envelope of a prediction with a file in base64; only a part of the file is in memory at a time. */
async function* jsonWith(
  { outputs: _, ...data }: ApiPrediction,
  open: () => Promise<AsyncIterable<Buffer>>,
): AsyncGenerator<Uint8Array, void> {
  const text = JSON.stringify({ code: 200, message: 'success', data });
  yield Buffer.from(`${text.slice(0, -'}}'.length)},"outputs":["`);
  let rest = Buffer.alloc(0);
  for await (const chunk of await open()) {
    const bytes = Buffer.concat([rest, chunk]);
    // Three bytes are four characters: padding comes at the end only.
    const whole = bytes.length - (bytes.length % 3);
    yield Buffer.from(bytes.toString('base64', 0, whole));
    rest = bytes.subarray(whole);
  }
  yield Buffer.from(`${rest.toString('base64')}"]}}`);
}

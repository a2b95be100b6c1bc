import type { Logger } from 'pino';
import { Signal } from '../../../lib/contract/signal';
import type { Jobs } from '../../jobs';
import { storageDown } from '../../store/errors';
import type { JobRow } from '../../store/schema';
import type { Store } from '../../store/store';
import { fetchImage, fetchMs, type ImageContext } from './image';
import { findMissing, type LoraFinder } from './loras';

/** Fetches at a time: each has at most one image in memory. */
const maxAtOnce = 16;
/**
 * How long no other node takes a job over, in seconds: a fetch, and a write to a bucket, which fails after
 * 30 s without an answer.
 */
const holdSeconds = fetchMs / 1000 + 60;

/** How long a job waits after its files could not be stored, in seconds. */
const pause = 5;

/** What the loop works with. */
export type IntakeContext = ImageContext &
  LoraFinder & {
    readonly store: Pick<Store, 'listen'>;
    readonly jobs: Pick<
      Jobs,
      'takeIntake' | 'intakeDone' | 'intakeFailed' | 'intakeReturned' | 'get'
    >;
    readonly log: Logger;
  };

/**
 * Fetches the files of waiting jobs, several at a time, until the signal. A submission wakes it; a timer
 * finds jobs of a node that has ended. The signal interrupts fetches; their jobs are found again.
 */
export async function runIntake(context: IntakeContext, signal: AbortSignal): Promise<void> {
  const underWay = new Set<Promise<void>>();
  const wake = new Signal();
  const onNews = () => wake.raise();
  const stopListening = await context.store.listen('intakeDue', onNews);
  signal.addEventListener('abort', onNews, { once: true });
  try {
    while (!signal.aborted) {
      for (const job of await takeJobs(context, maxAtOnce - underWay.size)) {
        const work = handle(context, job, signal).finally(() => {
          underWay.delete(work);
          wake.raise();
        });
        underWay.add(work);
      }
      if (!signal.aborted) await wake.wait(context.config.KINORA_SWEEP_SECONDS * 1000);
    }
  } finally {
    signal.removeEventListener('abort', onNews);
    await stopListening();
    await Promise.all(underWay);
  }
}

async function takeJobs({ jobs, log }: IntakeContext, limit: number): Promise<JobRow[]> {
  if (limit <= 0) return [];
  try {
    return await jobs.takeIntake(limit, holdSeconds);
  } catch (err) {
    // The database does not answer: the loop tries again.
    log.warn({ err }, 'waiting jobs could not be taken');
    return [];
  }
}

/** One job; a failure that its files did not cause is repeated later. */
async function handle(context: IntakeContext, job: JobRow, signal: AbortSignal): Promise<void> {
  try {
    await processFiles(context, job, signal);
  } catch (err) {
    if (!signal.aborted)
      context.log.warn({ err, job: job.id }, 'the files of a job were not processed');
    if (signal.aborted || storageDown(err))
      await returnJob(context, job, signal.aborted ? 0 : pause);
  }
}

/** Returns a job with its attempt, as its files did not cause the failure. */
async function returnJob(
  { jobs, log }: IntakeContext,
  job: JobRow,
  seconds: number,
): Promise<void> {
  // Where this fails too, the job is found again when its hold ends.
  await jobs.intakeReturned(job, seconds).catch((err: unknown) => {
    log.warn({ err, job: job.id }, 'a job was not returned');
  });
}

async function processFiles(
  context: IntakeContext,
  job: JobRow,
  signal: AbortSignal,
): Promise<void> {
  const { jobs } = context;
  const loras = await findMissing(context, job.owner, job.loras);
  if (typeof loras === 'string') {
    await jobs.intakeFailed(job, loras);
    return;
  }
  const image = job.image ?? (await fetchImage(context, job.id, job.input.image, signal));
  if (typeof image === 'string') {
    await jobs.intakeFailed(job, image);
    return;
  }
  const done = await jobs.intakeDone(job.id, image, loras);
  if (done || job.image) return;
  const now = await jobs.get(job.id);
  // Cancelled or deleted meanwhile: nothing else would remove the file that was just stored. A job with an
  // image got it from a faster node, under the same key.
  if (!now || (now.finishedAt && !now.image)) await context.blobs.remove(image.key);
}

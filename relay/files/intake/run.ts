import type { Logger } from 'pino';
import { Signal } from '../../../lib/contract/signal';
import type { Jobs } from '../../jobs';
import { storageDown } from '../../store/errors';
import type { JobRow } from '../../store/schema';
import type { Store } from '../../store/store';
import { fetchImage, fetchMs, type ImageContext } from './image';
import { findAgain, type LoraFinder } from './loras';

/** Fetches under way at a time: each holds at most one image in memory. */
const maxAtOnce = 16;
/**
 * How long this node has a job to itself: a fetch, and a put into a bucket that gives up after half a
 * minute of silence. In seconds.
 */
const holdSeconds = fetchMs / 1000 + 60;

/** How long a job waits when the storage did not take its files, in seconds. */
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
 * Takes waiting jobs, a few at a time, until the signal: woken when one is submitted, and by time for
 * those that another node left behind. What is under way at the signal is broken off and found again.
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
    // The database is away: asked again after a while.
    log.warn({ err }, 'waiting jobs could not be taken');
    return [];
  }
}

/** One job; a failure that is not the fault of its files is tried again later. */
async function handle(context: IntakeContext, job: JobRow, signal: AbortSignal): Promise<void> {
  try {
    await takeIn(context, job, signal);
  } catch (err) {
    if (!signal.aborted)
      context.log.warn({ err, job: job.id }, 'the files of a job were not taken in');
    if (signal.aborted || storageDown(err))
      await giveBack(context, job, signal.aborted ? 0 : pause);
  }
}

/** Gives a job back with its attempt: that it failed was no fault of its files. */
async function giveBack({ jobs, log }: IntakeContext, job: JobRow, seconds: number): Promise<void> {
  // Where this fails too, the job is found again when its time is over.
  await jobs.intakeReturned(job, seconds).catch((err: unknown) => {
    log.warn({ err, job: job.id }, 'a job was not given back');
  });
}

async function takeIn(context: IntakeContext, job: JobRow, signal: AbortSignal): Promise<void> {
  const { jobs } = context;
  const loras = await findAgain(context, job.owner, job.loras);
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
  // Cancelled or deleted meanwhile: nothing else would remove what was just stored. A job that has its
  // image has it from a faster node, under the same key.
  if (!now || (now.finishedAt && !now.image)) await context.blobs.remove(image.key);
}

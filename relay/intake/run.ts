import type { Logger } from 'pino';
import type { Jobs } from '../relay';
import { storageDown } from '../store/errors';
import type { JobRow } from '../store/schema';
import type { Store } from '../store/store';
import { fetchImage, fetchMs, type ImageRoom } from './image';
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
export type RunRoom = ImageRoom &
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
export async function runIntake(room: RunRoom, signal: AbortSignal): Promise<void> {
  const underWay = new Set<Promise<void>>();
  let wake: () => void = () => undefined;
  let isAwake = false;
  const ring = () => {
    isAwake = true;
    wake();
  };
  const forget = await room.store.listen('intakeDue', ring);
  signal.addEventListener('abort', ring, { once: true });
  try {
    while (!signal.aborted) {
      isAwake = false;
      for (const job of await takeJobs(room, maxAtOnce - underWay.size)) {
        const work = handle(room, job, signal).finally(() => {
          underWay.delete(work);
          ring();
        });
        underWay.add(work);
      }
      if (!isAwake) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, room.config.KINORA_SWEEP_SECONDS * 1000);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
          if (isAwake || signal.aborted) wake();
        });
      }
    }
  } finally {
    signal.removeEventListener('abort', ring);
    await forget();
    await Promise.all(underWay);
  }
}

async function takeJobs({ jobs, log }: RunRoom, limit: number): Promise<JobRow[]> {
  if (limit <= 0) return [];
  try {
    return await jobs.takeIntake(limit, holdSeconds);
  } catch (err) {
    // The database is away: asked again after a while.
    log.warn({ err }, 'waiting jobs could not be taken');
    return [];
  }
}

/** One job; what is no fault of its files is left for another time. */
async function handle(room: RunRoom, job: JobRow, signal: AbortSignal): Promise<void> {
  try {
    await takeIn(room, job, signal);
  } catch (err) {
    if (!signal.aborted)
      room.log.warn({ err, job: job.id }, 'the files of a job were not taken in');
    if (signal.aborted || storageDown(err)) await giveBack(room, job, signal.aborted ? 0 : pause);
  }
}

/** Attempts count what a job's files do to us, not what we do to them. */
async function giveBack({ jobs, log }: RunRoom, job: JobRow, seconds: number): Promise<void> {
  // Where even this fails, it is found again when its time is over.
  await jobs.intakeReturned(job, seconds).catch((err: unknown) => {
    log.warn({ err, job: job.id }, 'a job was not given back');
  });
}

async function takeIn(room: RunRoom, job: JobRow, signal: AbortSignal): Promise<void> {
  const { jobs } = room;
  const loras = await findAgain(room, job.owner, job.loras);
  if (typeof loras === 'string') {
    await jobs.intakeFailed(job, loras);
    return;
  }
  const image = job.image ?? (await fetchImage(room, job.id, job.input.image, signal));
  if (typeof image === 'string') {
    await jobs.intakeFailed(job, image);
    return;
  }
  const done = await jobs.intakeDone(job.id, image, loras);
  if (done || job.image) return;
  const now = await jobs.get(job.id);
  // Cancelled or deleted meanwhile: nobody would ever remove what was just stored. A job that has its
  // image has it from whoever was quicker, by the same key.
  if (!now || (now.finishedAt && !now.image)) await room.blobs.remove(image.key);
}

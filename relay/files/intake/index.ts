import { type ImageField, imageFields, type Submission } from '../../../lib/contract/v3';
import type { Caller } from '../../access/caller';
import type { NewJob } from '../../jobs/submit';
import { workUntil } from '../../loop';
import { storageDown } from '../../store/errors';
import { imageColumns, type JobRow } from '../../store/schema';
import type { FilesContext } from '../context';
import { invalidField } from '../requests';
import { acceptImage, FetchFailure, fetchImage, fetchMs } from './image';
import { misfitOf, withNeeds } from './lora-needs';
import { findLora, findMissing, isFound } from './loras';

/** What the intake works with. */
export type IntakeContext = Omit<FilesContext, 'keys' | 'limits'>;

/** Fetches at a time: each has at most one image in memory. */
const maxAtOnce = 16;
/**
 * How long no other node takes a job over, in seconds: two fetches, and a write to a bucket, which fails after
 * 30 s without an answer.
 */
const holdSeconds = (2 * fetchMs) / 1000 + 60;
/** How long a job waits after its files could not be stored, in seconds. */
const pauseSeconds = 5;

/** Checks and fetches a submission's files before a worker sees it. */
export function createIntake(context: IntakeContext) {
  const { config, store, blobs, jobs, space, log } = context;

  async function takeJobs(limit: number): Promise<JobRow[]> {
    if (limit <= 0) return [];
    try {
      return await jobs.takeIntake(limit, holdSeconds);
    } catch (err) {
      // The database does not answer: the loop tries again.
      log.warn({ err }, 'waiting jobs could not be taken');
      return [];
    }
  }

  /** One job; a failure that its files did not cause is repeated later, and costs no attempt. */
  async function handle(job: JobRow, signal: AbortSignal): Promise<void> {
    try {
      await processFiles(job, signal).catch(async (thrown: unknown) => {
        if (!(thrown instanceof FetchFailure)) throw thrown;
        if (thrown.isPassing) await jobs.intakePostponed(job, thrown.message);
        else await jobs.intakeFailed(job, thrown.message);
      });
    } catch (err) {
      if (!signal.aborted) log.warn({ err, job: job.id }, 'the files of a job were not processed');
      if (!signal.aborted && !storageDown(err)) return;
      // Where this fails too, the job is found again when its hold ends.
      await jobs
        .intakeReturned(job, signal.aborted ? 0 : pauseSeconds)
        .catch((error: unknown) => log.warn({ err: error, job: job.id }, 'a job was not returned'));
    }
  }

  async function processFiles(job: JobRow, signal: AbortSignal): Promise<void> {
    const found = await findMissing(context, job.owner, job.loras);
    const loras = typeof found === 'string' ? [] : await withNeeds(context, found);
    const refusal = typeof found === 'string' ? found : misfitOf(loras);
    if (refusal !== null) {
      await jobs.intakeFailed(job, refusal);
      return;
    }
    for (const field of imageFields) {
      const column = imageColumns[field];
      const url = job.input[field];
      if (url === undefined || job[column]) continue;
      const image = await fetchImage(context, { jobId: job.id, field }, url, signal);
      if (await jobs.imageStored(job.id, { [column]: image })) continue;
      const now = await jobs.get(job.id);
      // Cancelled or deleted meanwhile: nothing else would remove the file that was just stored. A job with an
      // image got it from a faster node, under the same key.
      if (!now || (now.finishedAt && !now[column])) await blobs.remove(image.key);
      return;
    }
    await jobs.intakeDone(job.id, loras);
  }

  return {
    /**
     * Checks images and adapters of a submission. A data URI and an own upload are checked and stored at
     * once; another address is left to `run`.
     *
     * @returns what goes into the job's row
     * @throws ApiError `INVALID_IMAGE` for a data URI or upload that is no usable image,
     * `INVALID_PARAMETER` for an address or adapter path that cannot be read, `STORAGE_DOWN` on a full disk
     */
    async accept(
      jobId: string,
      submission: Submission,
      caller: Caller,
    ): Promise<Pick<NewJob, 'input' | 'image' | 'lastImage' | 'loras' | 'ready'>> {
      await space.require();
      const {
        enable_sync_mode: _sync,
        enable_base64_output: base64,
        webhook: _webhook,
        ...input
      } = submission;
      // Adapters first: what is refused for them leaves no image behind.
      const found = await Promise.all(
        input.loras.map((lora, index) => findLora(context, caller.owner, lora, index)),
      );
      const loras = await withNeeds(context, found);
      const misfit = misfitOf(loras);
      if (misfit !== null) throw invalidField('loras', misfit);
      const { last_image: sentLast, ...rest } = input;
      const accept = (field: ImageField, sent: string) =>
        acceptImage(context, { jobId, field }, sent, caller);
      const { url, image } = await accept('image', input.image);
      const last = sentLast === undefined ? null : await accept('last_image', sentLast);
      const ready = image !== null && last?.image !== null && loras.every(isFound);
      const switches = {
        ...(base64 && { enable_base64_output: true as const }),
        ...(last && { last_image: last.url }),
      };
      const stored = { ...rest, ...switches, image: url };
      return { input: stored, image, ...(last && { lastImage: last.image }), loras, ready };
    },
    /**
     * Fetches the files of waiting jobs on this node, several at a time, until the signal, which interrupts fetches:
     * their jobs are found again. A passing failure is repeated later, by any node; another one ends the job with code
     * 1402. A submission wakes it; a timer finds jobs of a node that has ended.
     */
    async run(signal: AbortSignal): Promise<void> {
      const listen = (onNews: () => void) => store.listen('intakeDue', onNews);
      const { running } = await workUntil(signal, { listen, log }, async (begin, underWay) => {
        for (const job of await takeJobs(maxAtOnce - underWay)) begin(handle(job, signal));
        return config.KINORA_SWEEP_SECONDS * 1000;
      });
      await running;
    },
  };
}

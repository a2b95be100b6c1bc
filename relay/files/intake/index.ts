import { buffer } from 'node:stream/consumers';
import { maxImageBytes, type Size } from '../../../lib/contract';
import {
  type ApiError,
  type ImageField,
  imageFields,
  type Submission,
} from '../../../lib/contract/v3';
import { sniffImage } from '../../../lib/video/sniff';
import type { Caller } from '../../access/caller';
import type { Config } from '../../config';
import { GuardError } from '../../guard/addresses';
import { fetchOk } from '../../guard/guard';
import type { NewJob } from '../../jobs/submit';
import { workUntil } from '../../loop';
import { imageColumns, type JobImage, type JobRow } from '../../store/schema';
import { storageDown } from '../../store/store';
import { type FilesContext, invalidField } from '../requests';
import {
  checkImage,
  keepFile,
  linkedUpload,
  removeFile,
  type StoredUpload,
  sentenceOf,
} from '../uploads';
import { findLora, findMissing, isFound, misfitOf, withNeeds } from './loras';

export type IntakeContext = Omit<FilesContext, 'shares'>;

/** Longest fetch of one image, in milliseconds. */
const fetchMs = 30_000;
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
  const { config, store, jobs, requireSpace, log } = context;

  /** One job; a failure that its files did not cause is repeated later, and costs no attempt. */
  async function handle(job: JobRow, signal: AbortSignal): Promise<void> {
    try {
      await processFiles(job, signal);
    } catch (err) {
      if (err instanceof GuardError && err.isPassing) await jobs.intakePostponed(job, err.message);
      else if (err instanceof GuardError) await jobs.intakeFailed(job, err.message);
      else if (signal.aborted) await jobs.intakeReturned(job, 0);
      else {
        log.warn({ err, job: job.id }, 'the files of a job were not processed');
        if (storageDown(err)) await jobs.intakeReturned(job, pauseSeconds);
      }
    }
  }

  async function processFiles(job: JobRow, signal: AbortSignal): Promise<void> {
    const loras = await withNeeds(context, await findMissing(context, job.owner, job.loras));
    const misfit = misfitOf(loras);
    if (misfit !== null) throw new GuardError('refused', misfit);
    let start = job.image;
    for (const field of imageFields) {
      const column = imageColumns[field];
      const url = job.input[field];
      if (url === undefined || job[column]) continue;
      const of = { jobId: job.id, field };
      const { upload, image } = await fetchImage(context, of, job, url, signal);
      if (field === 'image') start = image;
      if (await jobs.imageStored(job.id, { [column]: image })) continue;
      await removeFile(context, upload);
      return;
    }
    const size = job.size === 'auto' && start ? await sizeOf(context, start) : undefined;
    await jobs.intakeDone(job.id, loras, size);
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
    ): Promise<Pick<NewJob, 'input' | 'size' | 'image' | 'lastImage' | 'loras' | 'ready'>> {
      await requireSpace();
      const { enable_sync_mode: _sync, webhook: _webhook, ...kept } = submission;
      const { enable_base64_output: base64, last_image: sentLast, ...input } = kept;
      // Adapters first: what is refused for them leaves no image behind.
      const resolved = await Promise.all(
        input.loras.map((lora, index) => findLora(context, caller.owner, lora, index)),
      );
      const loras = await withNeeds(context, resolved);
      const misfit = misfitOf(loras);
      if (misfit !== null) throw invalidField('loras', misfit);
      const accept = (field: ImageField, sent: string) =>
        acceptImage(context, { jobId, field }, sent, caller);
      const { url, image } = await accept('image', input.image);
      const last = sentLast === undefined ? null : await accept('last_image', sentLast);
      const { size } = input;
      const hasFiles = image !== null && last?.image !== null && loras.every(isFound);
      const ready = hasFiles && size !== 'auto';
      const stored = {
        ...input,
        size: size === 'auto' ? ('1280*720' as const) : size,
        ...(base64 && { enable_base64_output: true as const }),
        ...(last && { last_image: last.url }),
        image: url,
      };
      return { input: stored, size, image, ...(last && { lastImage: last.image }), loras, ready };
    },
    /**
     * Fetches the files of waiting jobs on this node, several at a time, until the signal, which interrupts fetches:
     * their jobs are found again. A passing failure is repeated later, by any node; another one ends the job with code
     * 1402. A submission wakes it; a timer finds jobs of a node that has ended.
     */
    async run(signal: AbortSignal): Promise<void> {
      const listen = (onNews: () => void) => store.listen('intakeDue', onNews);
      await workUntil(signal, { listen, log }, async (begin, underWay) => {
        const limit = maxAtOnce - underWay;
        const taken = limit > 0 ? await jobs.takeIntake(limit, holdSeconds) : [];
        for (const job of taken) {
          // It is found again when its hold ends.
          const onError = (err: unknown) =>
            log.warn({ err, job: job.id }, 'a job was not returned');
          begin(handle(job, signal).catch(onError));
        }
        return config.KINORA_SWEEP_SECONDS * 1000;
      });
    },
  };
}

/** The size of a video whose image decides it. */
async function sizeOf({ blobs }: IntakeContext, { key }: JobImage): Promise<Size> {
  const { isUpright } = await sniffImage(await buffer((await blobs.read(key)).body));
  return isUpright ? '720*1280' : '1280*720';
}

/** Longest wait for the first byte, in milliseconds: a host that does not answer blocks other fetches. */
const answerMs = 10_000;

interface ImageOf {
  readonly jobId: string;
  readonly field: ImageField;
}

const names: Readonly<Record<ImageField, string>> = {
  image: 'The image',
  last_image: 'The end image',
};

/**
 * An image of a submission, where it needs no fetch.
 *
 * @returns `url` is the image's address in the prediction; `image` is null where it is to be fetched
 * @throws ApiError `INVALID_IMAGE`, `INVALID_PARAMETER`, `STORAGE_DOWN`
 */
async function acceptImage(
  context: IntakeContext,
  of: ImageOf,
  sent: string,
  caller: Caller,
): Promise<{ url: string; image: JobImage | null }> {
  const { field } = of;
  const text = sent.trim();
  if (!/^https?:/i.test(text)) return await keepBase64(context, of, text, caller);
  const upload = await linkedUpload(context, text, caller.owner);
  if (upload !== undefined) {
    if (!upload?.blobKey) {
      throw unusable(field, `The upload that ${field} names is not there, or has expired.`);
    }
    if (!upload.contentType.startsWith('image/'))
      throw unusable(field, `The upload that ${field} names is no image.`);
    const { blobKey: key, contentType: type, bytes } = upload;
    return { url: text, image: { key, type, bytes } };
  }
  try {
    context.guard.check(text, { http: context.config.KINORA_ALLOW_HTTP_IMAGES });
  } catch (thrown) {
    if (!(thrown instanceof GuardError)) throw thrown;
    throw invalidField(field, `${field}: ${thrown.message}`, { cause: thrown });
  }
  return { url: text, image: null };
}

/**
 * Stores an image in base64, alone or in a data URI, as an upload of its owner, so that the prediction has a short
 * address. Node decodes both alphabets (RFC 4648, 4 and 5) and skips white space.
 */
async function keepBase64(
  context: IntakeContext,
  of: ImageOf,
  text: string,
  caller: Caller,
): Promise<{ url: string; image: JobImage }> {
  const { config, links } = context;
  const base64 = text
    .slice(text.indexOf(',') + 1)
    .replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  // Checked before decoding: four characters are three bytes, and a line of text may end with two more.
  if (base64.length > maxBytesOf(config) * 1.4 + 1000) {
    throw tooLarge(of.field, config);
  }
  const { upload, image } = await keepImage(context, of, caller, Buffer.from(base64, 'base64'));
  return { url: links.uploadDownload(upload), image };
}

/** Stores an image of a job. @throws ApiError `INVALID_IMAGE`, `STORAGE_DOWN` */
async function keepImage(
  context: IntakeContext,
  { jobId, field }: ImageOf,
  owner: Pick<Caller, 'owner' | 'keyId'>,
  content: Buffer,
): Promise<{ upload: StoredUpload; image: JobImage }> {
  const { config } = context;
  if (content.length > maxBytesOf(config)) throw tooLarge(field, config);
  const { type, bytes } = await checkImage(content, field);
  const filename = `image.${type.slice(type.indexOf('/') + 1)}`;
  const named = { filename, contentType: type, jobId };
  const upload = await keepFile(context, owner, named, bytes, bytes.length, async () => type);
  return { upload, image: { key: upload.blobKey, type, bytes: bytes.length } };
}

/**
 * Fetches an image of a waiting job, once.
 *
 * @returns where it is stored
 * @throws GuardError with one sentence for the job; ApiError `STORAGE_DOWN`; the signal's reason
 */
export async function fetchImage(
  context: IntakeContext,
  of: ImageOf,
  owner: Pick<Caller, 'owner' | 'keyId'>,
  url: string,
  signal: AbortSignal,
): ReturnType<typeof keepImage> {
  try {
    signal.throwIfAborted();
    const { config, guard } = context;
    const http = config.KINORA_ALLOW_HTTP_IMAGES;
    const limits = { redirects: 3, maxBytes: maxBytesOf(config), totalMs: fetchMs, answerMs };
    const { body } = await fetchOk(guard, url, { http, ...limits, signal });
    return await keepImage(context, of, owner, Buffer.concat(await body.toArray()));
  } catch (thrown) {
    signal.throwIfAborted();
    if (thrown instanceof GuardError) {
      const sentence = `${names[of.field]} could not be loaded: ${thrown.message}`;
      throw new GuardError(thrown.reason, sentence);
    }
    if (storageDown(thrown)) throw thrown;
    const sentence = `${names[of.field]} cannot be used: ${sentenceOf(thrown)}`;
    throw new GuardError('refused', sentence);
  }
}

/** Largest image, in bytes: the setting, within what every part of Kinora takes. */
function maxBytesOf(config: Config): number {
  return Math.min(config.KINORA_MAX_IMAGE_BYTES, maxImageBytes);
}

function tooLarge(field: ImageField, config: Config): ApiError {
  return unusable(field, `${names[field]} is larger than ${maxBytesOf(config)} bytes.`);
}

function unusable(field: ImageField, sentence: string): ApiError {
  return invalidField(field, sentence, { code: 'INVALID_IMAGE' });
}

import { Readable } from 'node:stream';
import { KinoraError, servedName } from '../../lib/contract';
import { ApiError, type ImageField } from '../../lib/contract/v3';
import { readSafetensorsHeader } from '../../lib/weights/formats/safetensors';
import { truncated } from '../../lib/weights/formats/source';
import { GuardError } from '../guard/addresses';
import { fetchOk } from '../guard/guard';
import { streamed } from '../http/reply';
import { type ClaimedJob, isClaimed } from '../jobs';
import { imageColumns } from '../store/schema';
import { type LinkPurpose, leaseNonce } from './links';
import { type FileHandler, type FilesContext, invalidField } from './requests';
import { headersOf, serveBlob } from './serving';
import { loraType } from './uploads';

/** Longest fetch of one adapter, in milliseconds. */
const totalMs = 15 * 60_000;
/** Inputs are for our own pages, and for one attempt. */
const forWorkers = { readers: 'same-origin', maxAge: 0 } as const;

/**
 * The running job that a signed address is for. The signature covers the attempt's lease: the address
 * ends with the lease.
 *
 * @throws ApiError `NOT_FOUND`
 */
async function runningJob(
  { links, jobs }: FilesContext,
  purpose: LinkPurpose,
  id: string,
  query: URLSearchParams,
): Promise<ClaimedJob> {
  const job = await jobs.get(id);
  const isRunning = job && isClaimed(job) && links.isOpen(purpose, id, leaseNonce(job), query);
  if (!isRunning) throw new ApiError('NOT_FOUND');
  return job;
}

/** `GET /files/jobs/{id}/image` and `…/last_image`: an image of a job, for the worker that has its lease. */
export const getJobImage =
  (field: ImageField): FileHandler =>
  async ({ files }, { request, query, params: { id = '' } }) => {
    const job = await runningJob(files, field, id, query);
    const image = job[imageColumns[field]];
    if (!image) throw new ApiError('NOT_FOUND');
    return await serveBlob(request, files.blobs, image.key, {
      ...forWorkers,
      type: image.type,
      filename: `${id}.${image.type.slice(image.type.indexOf('/') + 1)}`,
      tag: `${id}-${field}`,
    });
  };

/**
 * `GET /files/jobs/{id}/lora/{index}`: an adapter of a job, for the worker that has its lease. An upload
 * comes from the blob store; a link is fetched through the guard, its header checked, and streamed to the worker.
 *
 * A refusal's `details` holds one sentence that names the adapter: the worker fails the job with it.
 */
export const getJobLora: FileHandler = async ({ files }, { request, query, params }) => {
  const { id = '', index = '' } = params;
  const { blobs, config, guard, rows } = files;
  const at = /^[0-9]$/.test(index) ? Number(index) : -1;
  const job = await runningJob(files, `lora/${at}`, id, query);
  const lora = job.loras[at];
  if (!lora || lora.from === 'hub') throw new ApiError('NOT_FOUND');
  const field = `loras.${at}.path`;
  const presentation = { ...forWorkers, type: loraType, filename: `${at}.safetensors` };
  if (lora.from === 'upload') {
    const upload = await rows.get(lora.uploadId);
    if (!upload?.blobKey || upload.owner !== job.owner) {
      const sentence = `The LoRA ${lora.path} is no longer among the uploads.`;
      throw invalidField(field, sentence, { code: 'NOT_FOUND' });
    }
    const tag = upload.sha256 ?? upload.id;
    return await serveBlob(request, blobs, upload.blobKey, { ...presentation, tag });
  }
  try {
    const maxBytes = config.KINORA_MAX_LORA_BYTES;
    const limits = { redirects: 5, maxBytes, totalMs, signal: request.signal };
    const answer = await fetchOk(guard, lora.url, limits);
    const { bytes, body } = answer;
    const { whole: checked } = await withCheckedHeader(body, bytes);
    const named = servedName(answer.headers['content-disposition'], [lora.url, answer.url]);
    const filename = named ?? presentation.filename;
    const { ETag: _, ...headers } = headersOf({ ...presentation, filename, tag: '' });
    if (bytes !== null) headers['Content-Length'] = `${bytes}`;
    if (request.method !== 'HEAD') return new Response(streamed(checked), { headers });
    body.destroy();
    return new Response(null, { headers });
  } catch (thrown) {
    throw toRefusal(thrown, field, lora.path);
  }
};

/** Largest accepted header, which is kept in memory; that of a LoRA is well under 1 MB. */
const maxHeaderBytes = 16_000_000;

/**
 * Checks the header of a safetensors stream before any byte is sent on.
 *
 * @param size announced length; null where the sender gives none: then the end of the file is not checked
 * @returns its header, and the whole stream again
 * @throws KinoraError `MODEL_FILE_INVALID`, `MODEL_FILE_TRUNCATED`; what the source throws
 */
export async function withCheckedHeader(source: Readable, size: number | null) {
  const name = 'The file';
  const pieces = source[Symbol.asyncIterator]();
  let head = Buffer.alloc(0);
  const read = async (start: number, end: number) => {
    if (end > maxHeaderBytes) throw new KinoraError('MODEL_FILE_INVALID', `${name} is damaged.`);
    while (head.length < end) {
      const next = await pieces.next();
      if (next.done) throw truncated(name, end, head.length);
      head = Buffer.concat([head, next.value]);
    }
    return head.subarray(start, end);
  };
  const file = { name, size: size ?? Number.POSITIVE_INFINITY, read };
  const header = await readSafetensorsHeader(file).catch((thrown: unknown) => {
    source.destroy();
    throw thrown;
  });
  const whole = async function* () {
    yield head;
    yield* pieces;
  };
  return { header, whole: Readable.from(whole(), { objectMode: false }) };
}

/** The refusal as one sentence that names the adapter, for the worker to report. */
function toRefusal(cause: unknown, field: string, path: string): unknown {
  if (cause instanceof KinoraError) {
    const sentence = `The LoRA ${path} cannot be used: ${cause.message}`;
    return invalidField(field, sentence, { cause });
  }
  if (!(cause instanceof GuardError)) return cause;
  const sentence = `The LoRA ${path} could not be loaded: ${cause.message}`;
  // The worker asks again after a 503, and then leaves the job for another attempt.
  if (cause.isPassing) {
    const remedy = 'Try again in a few seconds.';
    const details = [{ field, message: sentence }];
    return new ApiError('STORAGE_DOWN', sentence, { cause, remedy, details });
  }
  const code = cause.reason === 'status' ? 'NOT_FOUND' : 'INVALID_PARAMETER';
  return invalidField(field, sentence, { code, cause });
}

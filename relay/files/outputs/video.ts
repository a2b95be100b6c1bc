import { randomBytes } from 'node:crypto';
import { openAsBlob } from 'node:fs';
import {
  formatOfFile,
  isFlagged,
  isRefusedPrompt,
  KinoraError,
  mostFramesPerSecond,
  namesChild,
} from '../../../lib/contract';
import {
  ApiError,
  type OwnVideo,
  type PredictionInput,
  variantOfProfile,
} from '../../../lib/contract/v3';
import type { VideoFacts } from '../../../lib/video/inspect';
import { followSamples } from '../../../lib/video/samples';
import { sniffImage } from '../../../lib/video/sniff';
import type { Caller } from '../../access/caller';
import { idForm } from '../../jobs/queries';
import { type JobRow, jobs, type NewJobRow } from '../../store/schema';
import { tooLarge, withLocalFile } from '../blobs';
import {
  bodyOf,
  type FileCall,
  type FileHandler,
  type FilesContext,
  invalidField,
  lengthOf,
} from '../requests';
import { serveBlob } from '../serving';
import { hasVideo, isUploaded } from '../shares/rows';
import { keepFile, removeFile, type UploadRows } from '../uploads';

const videoType = 'video/mp4';
const dayMs = 86_400_000;

/** A video as its uploader names it. */
interface VideoName {
  readonly jobId: string;
  readonly owner: string;
  /** Hex, as declared. */
  readonly sha256: string;
}

/** @throws ApiError `NOT_FOUND` for what is no id, `INVALID_PARAMETER` for what is no SHA-256 */
function checkName(name: VideoName): VideoName {
  if (!idForm.test(name.jobId)) throw new ApiError('NOT_FOUND');
  if (/^[0-9a-f]{64}$/.test(name.sha256)) return name;
  throw invalidField('sha256', 'sha256 must be 64 lower-case hex characters.');
}

/** The uploaded video, if its bytes are there. */
export async function findVideo(
  { rows, blobs }: FilesContext,
  { jobId, owner, sha256 }: VideoName,
) {
  const upload = await rows.same(owner, `${jobId}.mp4`, sha256);
  return upload && (await blobs.stat(upload.blobKey)) ? upload : null;
}

/** `PUT /api/worker/jobs/{id}/output?lease_token=…&sha256=…`: the video of a worker that has the job's lease. */
export const putOutput: FileHandler = async ({ files }, { request, query, caller, params }) => {
  const { id = '' } = params;
  const leaseToken = query.get('lease_token') ?? '';
  const name = checkName({ jobId: id, owner: '', sha256: query.get('sha256') ?? '' });
  if (leaseToken === '' || leaseToken.length > 100) {
    throw invalidField('lease_token', 'lease_token is required.');
  }
  const { owner } = await files.jobs.lease(id, leaseToken, caller.keyId);
  return await receiveVideo(files, request, { ...name, owner }, caller.keyId);
};

/**
 * Answers the PUT of a whole video, which is stored for all nodes: any of them may complete the job. The same bytes
 * again are no error. Until then it is an upload that expires with the time of an attempt.
 *
 * @throws ApiError `TOO_LARGE`, `INVALID_PARAMETER` for a body that breaks off, `OUTPUT_REJECTED` for another hash,
 *   `STORAGE_DOWN`
 */
async function receiveVideo(
  context: FilesContext,
  request: Request,
  name: VideoName,
  keyId: string,
): Promise<object> {
  const { KINORA_MAX_VIDEO_BYTES: maxBytes, KINORA_ATTEMPT_SECONDS: seconds } = context.config;
  const bytes = lengthOf(request) ?? 0;
  if (bytes > maxBytes) throw tooLarge(maxBytes);
  if (await findVideo(context, name)) return {};
  await context.requireSpace(bytes);
  const expiresAt = new Date(Date.now() + seconds * 1000);
  const file = { filename: `${name.jobId}.mp4`, contentType: videoType, expiresAt };
  const owner = { owner: name.owner, keyId };
  const check = async (_file: string, sha256: string) => {
    if (sha256 === name.sha256) return videoType;
    throw rejected('The received bytes have another SHA-256.');
  };
  await keepFile(context, owner, file, bodyOf(request), maxBytes, check);
  return {};
}

/**
 * An uploaded video, checked. One that does not fit the request is removed.
 *
 * @param request what the job asks for
 * @param declared length of the video by its sender
 * @throws ApiError `OUTPUT_REJECTED`; `CONFLICT` when it is not there
 */
export async function takeVideo(
  context: FilesContext,
  name: VideoName,
  request: VideoRequest,
  declared?: number,
): Promise<{ key: string; bytes: number }> {
  const upload = await findVideo(context, name);
  if (!upload) throw new ApiError('CONFLICT', 'The video has not been uploaded as a whole.');
  const { blobKey: key, bytes } = upload;
  try {
    if (declared !== undefined && bytes !== declared) {
      throw rejected(`It has ${bytes} bytes and not ${declared}.`);
    }
    await withLocalFile(context, key, (file) => checkVideo(file, request));
  } catch (thrown) {
    if (thrown instanceof ApiError && thrown.code === 'OUTPUT_REJECTED') {
      await removeFile(context, upload);
    }
    throw thrown;
  }
  return { key, bytes };
}

/**
 * `GET /files/video/{id}.mp4`: the video, for holders of its signed address, without a key. A wrong signature
 * and an unknown id give the same answer; an expired address says that it expired.
 */
export const getVideo: FileHandler = async ({ files }, { request, query, params }) => {
  const { file = '' } = params;
  const id = /^([0-9a-f]{32})\.mp4$/.exec(file)?.[1];
  const job = id ? await files.jobs.get(id) : null;
  const end = job?.outputNonce && files.links.verify('video', job.id, job.outputNonce, query);
  if (!job || !end) throw new ApiError('NOT_FOUND');
  const until = Math.min(end.getTime(), job.outputExpiresAt?.getTime() ?? 0);
  const secondsLeft = Math.floor((until - Date.now()) / 1000);
  if (!job.outputKey || secondsLeft <= 0) {
    throw new ApiError('NOT_FOUND', 'This video has expired and was removed.');
  }
  return await serveBlob(request, files.blobs, job.outputKey, {
    type: videoType,
    filename: `${job.id}.mp4`,
    tag: job.outputSha256 ?? job.id,
    readers: 'cross-origin',
    // Short, so that a revoked link soon stops working in browsers that have the video.
    maxAge: Math.min(300, secondsLeft),
  });
};

export type VideoRequest = Pick<PredictionInput, 'size' | 'duration' | 'upscale' | 'smooth'>;

const toleranceSeconds = 0.5;

/**
 * Checks that a file is the requested video: an MP4 with one H.264 track, width and height
 * exactly, at the model's own frame rate, length within half a second, and every sample inside the file.
 *
 * @throws ApiError `OUTPUT_REJECTED` with what is wrong
 */
export async function checkVideo(file: string, request: VideoRequest): Promise<VideoFacts> {
  const blob = await openAsBlob(file);
  const { width, height, frameRate } = formatOfFile(request, mostFramesPerSecond);
  const mostFrames = 1 + (request.duration + toleranceSeconds) * frameRate;
  const read = async () => {
    const samples = await followSamples(blob, mostFrames);
    // Loaded with the first video: the MP4 reader would cost a start 0.2 s.
    const { inspectVideo } = await import('../../../lib/video/inspect');
    return { samples, facts: await inspectVideo(blob) };
  };
  const { samples, facts } = await read().catch((thrown: unknown) => {
    if (thrown instanceof KinoraError) throw rejected(thrown.message, thrown);
    if (!(thrown instanceof Error)) throw thrown;
    throw rejected(`This is not a readable MP4: ${thrown.message}.`, thrown);
  });
  if (facts.width !== width || facts.height !== height) {
    throw rejected(`It is ${facts.width}×${facts.height} and not ${width}×${height}.`);
  }
  if (facts.frames !== samples) throw rejected('Its samples do not each have a time.');
  const seconds = request.duration + 1 / facts.frameRate;
  if (!(Math.abs(facts.durationSeconds - seconds) <= toleranceSeconds)) {
    throw rejected(`It lasts ${facts.durationSeconds} s and not ${seconds.toFixed(2)} s.`);
  }
  return facts;
}

function rejected(sentence: string, cause?: unknown): ApiError {
  return new ApiError('OUTPUT_REJECTED', sentence, { cause });
}

/**
 * `PUT /api/admin/videos/{id}?sha256=…`: a video that the studio made, from a signed-in page. It becomes a result
 * when its link is made ({@link takeOwnVideo}); the sweep removes it otherwise.
 */
export const putOwnVideo: FileHandler = async ({ files }, call) =>
  await receiveVideo(files, call.request, named(call), call.caller.keyId);

/** `HEAD` of the same address: whether the video is there, in `Upload-Complete`. */
export const headOwnVideo: FileHandler = async ({ files }, call) => {
  const isThere = (await findVideo(files, named(call))) !== null;
  return new Response(null, { headers: { 'Upload-Complete': isThere ? '?1' : '?0' } });
};

/** The video that a request names. */
function named({ query, caller, params: { id = '' } }: FileCall): VideoName {
  const sha256 = query.get('sha256') ?? '';
  return checkName({ jobId: id, owner: caller.owner, sha256 });
}

/** File names of the pictures that are sent with a video: the one that a job was submitted with is another file. */
const pictureFiles = {
  poster: 'poster.jpg',
  image: 'framed-image.jpg',
  last_image: 'framed-last-image.jpg',
} as const;
type PictureName = keyof typeof pictureFiles;
type Pictures<Picture> = Partial<Record<PictureName, Picture>>;
const pictureNames = Object.keys(pictureFiles) as PictureName[];
const jpegType = 'image/jpeg';

/** The JPEGs that were sent with a video; `tag` changes with the bytes. */
export async function picturesOf(
  rows: UploadRows,
  jobId: string,
): Promise<Pictures<{ readonly key: string; readonly tag: string }>> {
  const files = await rows.ofJob(jobId);
  const found = pictureNames.flatMap((name) => {
    const {
      id,
      blobKey: key,
      sha256,
    } = files.find((one) => one.filename === pictureFiles[name]) ?? {};
    return id && key ? [[name, { key, tag: sha256 ?? id }] as const] : [];
  });
  return Object.fromEntries(found);
}

/** Stores the pictures of a job's video. @param pictures as {@link jpegsOf} gives them */
export async function keepPictures(
  context: FilesContext,
  { id: jobId, owner, keyId }: JobRow,
  pictures: Pictures<Uint8Array>,
): Promise<void> {
  const kept = await picturesOf(context.rows, jobId);
  for (const name of pictureNames) {
    const bytes = pictures[name];
    if (!bytes || kept[name]) continue;
    const file = { filename: pictureFiles[name], contentType: jpegType, jobId };
    await keepFile(context, { owner, keyId }, file, bytes, bytes.length, async () => jpegType);
  }
}

/**
 * Makes an uploaded video a finished prediction of its owner, with the retention of outputs, and stores its poster
 * unless it is flagged. The same video once more is no error.
 *
 * @param removeOld removes the earlier video of this id, once the new one is known to be there
 * @throws ApiError `CONFLICT` when it is not uploaded, `OUTPUT_REJECTED`, `PROMPT_REFUSED`, `INVALID_PARAMETER` for
 *   a poster that is no JPEG
 */
export async function takeOwnVideo(
  context: FilesContext,
  id: string,
  owner: Caller,
  video: OwnVideo,
  removeOld: () => Promise<unknown>,
): Promise<JobRow> {
  const { config, store, rows } = context;
  const isUnsafe = isFlagged(video.safety);
  const pictures = await jpegsOf({ poster: video.poster }, video.safety);
  const { prompt } = video.parameters;
  if (isRefusedPrompt(prompt) || (namesChild(prompt) && isUnsafe)) {
    throw new ApiError('PROMPT_REFUSED');
  }
  let job = await context.jobs.get(id, owner.owner);
  if (job?.outputSha256 !== video.sha256 || !hasVideo(job)) {
    const name = { jobId: id, owner: owner.owner, sha256: video.sha256 };
    const stored = await takeVideo(context, name, video.parameters);
    // The studio has decoded it again, or the earlier file has expired.
    if (job && isUploaded(job)) await removeOld();
    const row = rowOf(id, owner, video, { ...stored, days: config.KINORA_RETENTION_DAYS });
    [job = null] = await store.db.insert(jobs).values(row).onConflictDoNothing().returning();
    if (!job) throw new ApiError('CONFLICT', 'There is another prediction with this id.');
    await rows.give(stored.key, job);
  }
  // The job comes first: another owner's may have this id.
  await keepPictures(context, job, pictures);
  return job;
}

/** The pictures that are sent with a video, but no frame of a flagged one. @throws ApiError `INVALID_PARAMETER` */
export async function jpegsOf(
  sent: Pictures<string | undefined> | undefined,
  safety: OwnVideo['safety'],
): Promise<Pictures<Uint8Array>> {
  const jpegs: Pictures<Uint8Array> = {};
  for (const name of pictureNames) {
    const text = sent?.[name];
    if (text === undefined || (name === 'poster' && isFlagged(safety))) continue;
    const image = await sniffImage(Buffer.from(text, 'base64')).catch((cause: unknown) => {
      if (!(cause instanceof KinoraError)) throw cause;
    });
    if (image?.format !== 'jpeg') throw invalidField(name, `${name} must be a JPEG in base64.`);
    jpegs[name] = image.bytes;
  }
  return jpegs;
}

function rowOf(
  id: string,
  { owner, keyId }: Caller,
  video: OwnVideo,
  output: { key: string; bytes: number; days: number },
): NewJobRow {
  const { parameters, safety } = video;
  const now = new Date();
  const input = {
    ...parameters,
    image: '',
    enable_safety_checker: safety.status !== 'off',
    enable_prompt_optimizer: false,
  };
  return {
    id,
    owner,
    keyId,
    model: `kinora/wan-2.2/${variantOfProfile(video.profile)}`,
    input,
    seed: parameters.seed,
    status: 'completed',
    ready: true,
    size: parameters.size,
    duration: parameters.duration,
    needsLora: parameters.loras.length > 0,
    models: [],
    precisions: [],
    finishedAt: now,
    inferenceMs: video.inference_ms,
    applied: video.applied ?? null,
    outputKey: output.key,
    outputBytes: output.bytes,
    outputSha256: video.sha256,
    outputNonce: randomBytes(12).toString('hex'),
    outputExpiresAt: new Date(now.getTime() + output.days * dayMs),
    ranModel: video.model,
    safety: safety.status,
    safetyRecord: safety,
  };
}

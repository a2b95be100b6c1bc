import { randomBytes } from 'node:crypto';
import { isFlagged, isRefusedPrompt, KinoraError, namesChild } from '../../../lib/contract';
import { ApiError, type OwnVideo, variantOfProfile } from '../../../lib/contract/v3';
import { sniffImage } from '../../../lib/video/sniff';
import type { Caller } from '../../access/caller';
import { type JobRow, jobs, type NewJobRow } from '../../store/schema';
import { checkName, findVideo, receiveVideo, takeVideo, type VideoName } from '../outputs/video';
import {
  type FileCall,
  type FileHandler,
  type FilesContext,
  invalidField,
  queryOf,
} from '../requests';
import { keepFile, newUpload, type UploadRows } from '../uploads';
import { hasVideo } from './rows';

const dayMs = 86_400_000;

/**
 * `PUT /api/admin/videos/{id}?sha256=…`: a video that the studio made, from a signed-in page. It becomes a result
 * when its link is made ({@link takeOwnVideo}); the sweep removes it otherwise.
 */
export const putOwnVideo: FileHandler = async ({ files: context }, call) =>
  await receiveVideo(context, call.request, named(call), call.caller.keyId);

/** `HEAD` of the same address: whether the video is there, in `Upload-Complete`. */
export const headOwnVideo: FileHandler = async ({ files: context }, call) => {
  const isThere = (await findVideo(context, named(call))) !== null;
  return new Response(null, { headers: { 'Upload-Complete': isThere ? '?1' : '?0' } });
};

/** The video that a request names. */
function named({ request, caller, params: { id = '' } }: FileCall): VideoName {
  const sha256 = queryOf(request).get('sha256') ?? '';
  return checkName({ jobId: id, owner: caller.owner, sha256 });
}

const posterFile = { filename: 'poster.jpg', contentType: 'image/jpeg' };

/** The picture that the studio sent with a video; null where it sent none. */
export async function posterOf(
  rows: UploadRows,
  jobId: string,
): Promise<{ key: string; type: string } | null> {
  const files = await rows.ofJob(jobId);
  const poster = files.find(({ filename }) => filename === posterFile.filename);
  return poster?.blobKey ? { key: poster.blobKey, type: poster.contentType } : null;
}

/**
 * Makes an uploaded video a finished prediction of its owner, with the retention of outputs, and stores its poster
 * unless it is flagged. The same video once more is no error.
 *
 * @param removeOld called once the new video is known to be there, as it may replace an earlier one
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
  const poster = isUnsafe ? null : jpegOf(video);
  const { prompt } = video.parameters;
  if (isRefusedPrompt(prompt) || (namesChild(prompt) && isUnsafe)) {
    throw new ApiError('PROMPT_REFUSED');
  }
  let job = await context.jobs.get(id, owner.owner);
  if (job?.outputSha256 !== video.sha256 || !hasVideo(job)) {
    const name = { jobId: id, owner: owner.owner, sha256: video.sha256 };
    const stored = await takeVideo(context, name, video.parameters);
    await removeOld();
    const row = rowOf(id, owner, video, { ...stored, days: config.KINORA_RETENTION_DAYS });
    [job = null] = await store.db.insert(jobs).values(row).onConflictDoNothing().returning();
    if (!job) throw new ApiError('CONFLICT', 'There is another prediction with this id.');
    await rows.give(stored.key, job);
  }
  // The job comes first: another owner's may have this id.
  if (poster && !(await posterOf(rows, id))) {
    const draft = newUpload(owner, { ...posterFile, jobId: id }, config);
    await keepFile(context, draft, poster, poster.length, async () => posterFile.contentType);
  }
  return job;
}

function jpegOf({ poster }: OwnVideo): Uint8Array | null {
  if (poster === undefined) return null;
  const bytes = Buffer.from(poster, 'base64');
  try {
    if (sniffImage(bytes).format === 'jpeg') return bytes;
  } catch (cause) {
    if (!(cause instanceof KinoraError)) throw cause;
  }
  throw invalidField('poster', 'poster must be a JPEG in base64.');
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

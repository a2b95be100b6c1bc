import { createHash } from 'node:crypto';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, beforeEach } from 'vitest';
import type { ApiPrediction, Completion, WorkerJob } from '../../lib/contract/v3';
import { keepFile } from '../files/uploads';
import { uploads } from '../store/schema';
import { declarationOf, openTestApi, submission, type TestApi } from './api';
import { clearSafety } from './jobs';
import type { Answered } from './requests';
import { makeVideo } from './video';

/** Where the tests submit. */
export const model = '/api/v3/kinora/wan-2.2/i2v-720p-lora';

export let api: TestApi;
/** A video as a worker uploads it, and its checksum. */
export let video: Uint8Array;
export let sha256 = '';
/** Key and worker token of the present test's owner. */
export let key = '';
export let token = '';

/** Opens a node for the tests of a file, and gives each an owner, who sees no other test's jobs and workers. */
export function withApiOwner(): void {
  let owners = 0;
  beforeAll(async () => {
    api = await openTestApi({ KINORA_SYNC_SECONDS: '30' });
    video = await makeVideo();
    sha256 = createHash('sha256').update(video).digest('hex');
  }, 60_000);
  afterAll(() => api?.close(), 60_000);
  beforeEach(async () => {
    const owner = `owner${owners++}`;
    [key, token] = [await api.key(owner), await api.workerToken(owner)];
  });
}

export const send = (body: object, path = model): Promise<Answered> =>
  api.send('POST', path, { key, body });
export const submit = async (body: object = submission, path = model): Promise<ApiPrediction> =>
  (await send(body, path)).json.data;
export const result = async (id: string): Promise<ApiPrediction> =>
  (await api.send('GET', `/api/v3/predictions/${id}/result`, { key })).json.data;

export const work = (path: string, body: object, as = token): Promise<Answered> =>
  api.send('POST', `/api/worker/${path}`, { key: as, body });
/** @returns the `data` of the answer */
export const claim = async (more = {}, as = token) =>
  (await work('claim', { ...declarationOf(more), wait_seconds: 0 }, as)).json.data;
export const claimed = async (): Promise<WorkerJob> => {
  const { job } = await claim();
  if (!job) throw new Error('No job was given.');
  return job;
};

export const completionOf = ({ lease_token, parameters: { seed } }: WorkerJob) => ({
  lease_token,
  sha256,
  bytes: video.length,
  seed,
  inference_ms: 1234,
  model: 'mini',
  precision: 'f32',
  encoder: 'none',
  safety: clearSafety,
});

/** Puts a video where an upload under this lease ends, whatever its bytes are. */
export async function upload(job: WorkerJob, bytes = video): Promise<void> {
  const { files, jobs, store } = api.relay;
  const { owner = '', keyId = '' } = (await jobs.get(job.id)) ?? {};
  const file = { filename: `${job.id}.mp4`, contentType: 'video/mp4' };
  const check = async () => file.contentType;
  const { id } = await keepFile(files, { owner, keyId }, file, bytes, 1_000_000, check);
  await store.db.update(uploads).set({ sha256 }).where(eq(uploads.id, id));
}

export async function complete(job: WorkerJob, more: Partial<Completion> = {}): Promise<Answered> {
  await upload(job);
  return work(`jobs/${job.id}/complete`, { ...completionOf(job), ...more });
}

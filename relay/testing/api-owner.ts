import { createHash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach } from 'vitest';
import type { ApiPrediction, Completion, WorkerJob } from '../../lib/contract/v3';
import { partsFolder, putBlob } from '../files/blobs';
import { outputKey } from '../files/outputs/video';
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

/** Puts the video where an upload under this lease ends. */
export async function upload(job: WorkerJob, bytes = video): Promise<void> {
  const name = { jobId: job.id, leaseToken: job.lease_token, sha256 };
  const options = { type: 'video/mp4', maxBytes: 1_000_000 };
  const { config, files } = api.relay;
  const storage = { blobs: files.blobs, temporary: partsFolder(config) };
  await putBlob(storage, outputKey(name), bytes, options);
}

export async function complete(job: WorkerJob, more: Partial<Completion> = {}): Promise<Answered> {
  await upload(job);
  return work(`jobs/${job.id}/complete`, { ...completionOf(job), ...more });
}

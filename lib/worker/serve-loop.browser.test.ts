import { afterEach, beforeEach, expect, test } from 'vitest';
import { KinoraError } from '../contract';
import type { WorkerLora } from '../contract/v3';
import { KinoraDatabase } from '../predictions/database';
import { gpuLock } from '../predictions/locks';
import { listRuns, openRunFiles, servedRun } from '../predictions/run-files';
import { PredictionStore } from '../predictions/store';
import { sweep } from '../predictions/sweep';
import { cleanUp } from '../predictions/testing/clean-up';
import { FakeEngine, gate } from '../predictions/testing/engine';
import { listVideos, servedVideo, writeVideo } from '../predictions/videos';
import { holdTimers } from '../weights/testing/held-timers';
import type { UnfinishedLease } from './api';
import { WorkerClient } from './client';
import { advanceConnection, type Connection, type CurrentJob, disconnected } from './connection';
import { Adapters } from './inputs';
import { notChecked, PendingUploads } from './pending-uploads';
import { ServeLoop } from './serve-loop';
import { newJob, SmallRelay, serveOptions } from './testing/relay';

const abilities = { knows: [], safety_checker: 'ready' as const, prompt_optimizer: true };
let relay: SmallRelay;
let engine: FakeEngine;
let pendingUploads: PendingUploads;
let loop: ServeLoop;
let running: Promise<void>;
let state: Connection;
let lease: UnfinishedLease | null;
let outcomes: unknown[];
let statuses: string[];

beforeEach(() => {
  relay = new SmallRelay();
  engine = new FakeEngine();
  pendingUploads = new PendingUploads(`serving-${crypto.randomUUID()}`);
});
afterEach(async () => {
  loop.stop();
  await running;
  await cleanUp(pendingUploads.database);
});

/** A loop as one page has it. */
function serve(): void {
  state = disconnected;
  lease = null;
  outcomes = [];
  statuses = [];
  const client = new WorkerClient({ ...serveOptions, fetch: relay.fetch, firstDelayMs: 1 });
  loop = new ServeLoop({
    options: serveOptions,
    client,
    engine,
    pendingUploads,
    adapters: new Adapters(client, serveOptions.hub),
    abilities: async () => abilities,
    firstDelayMs: 1,
    onEvent(event) {
      state = advanceConnection(state, event);
      if (statuses.at(-1) !== state.status) statuses.push(state.status);
      if (event.type === 'ended') outcomes.push([event.job.outcome, event.job.error?.code ?? null]);
    },
    onLease: (held) => {
      lease = held;
    },
  });
  running = loop.run();
}

const makeJob = (n = 1, loras: WorkerLora[] = []) =>
  newJob(n, { loras, heartbeat_interval_ms: 10 });

/** A slow machine may take a while. */
const soon = { timeout: 30_000 };
/** The engine has begun: the state alone is so from the claim on, before the job's image is there. */
const isWorking = () =>
  expect.poll(() => engine.seen !== null && state.status, soon).toBe('working');
/** Steps that last until the engine is cancelled. */
const untilCancelled = async () => {
  while (engine.cancels === 0) await new Promise((resolve) => setTimeout(resolve, 5));
};

test('a job is claimed with the GPU, computed under heartbeats, uploaded whole and completed', async () => {
  const { opened, open } = gate();
  engine.script = () => opened;
  const model = 'kinora/wan-2.2/i2v-720p-lora-ultra-fast';
  const job = { ...makeJob(), model, enable_prompt_optimizer: true };
  relay.submit(job);
  serve();
  await isWorking();
  expect(engine.seen?.profile).toBe('ultra-fast');
  expect((await navigator.locks.query()).held?.map(({ name }) => name)).toContain(gpuLock);
  expect(lease).toEqual({ id: job.id, token: 'lease-1' });
  // Heartbeats go on while no step ends, and one of them has the picture.
  const pictures = () => relay.asked.filter(({ body }) => typeof body.preview === 'string');
  await expect.poll(() => pictures().length, soon).toBe(1);
  const heartbeats = relay.verbs('heartbeat').length;
  await expect
    .poll(() => relay.verbs('heartbeat').length, soon)
    .toBeGreaterThanOrEqual(heartbeats + 2);
  const [picture, ...more] = pictures();
  expect(more).toEqual([]);
  expect(picture?.body).toMatchObject({ phase: 'denoise', step: 0, steps: 2 });
  expect(picture?.body.preview).toMatch(/^data:image\/webp;base64,[A-Za-z0-9+/=]{20,}$/);
  open();
  await expect.poll(() => outcomes, soon).toEqual([['completed', null]]);

  const sent = relay.uploads.get(job.id) ?? new Uint8Array();
  expect(new TextDecoder().decode(sent)).toContain(job.id);
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', new Uint8Array(sent)));
  const sha256 = [...hash].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  expect(relay.asked.find(({ verb }) => verb === 'complete')?.body).toEqual({
    lease_token: 'lease-1',
    sha256,
    bytes: sent.length,
    seed: 7,
    inference_ms: 1250,
    sampling_ms: 1000,
    decode_ms: 0,
    model: 'mini',
    precision: 'f32',
    encoder: 'webcodecs',
    safety: engine.made?.safety,
    prompt_optimization: engine.made?.promptOptimization,
    pictures: { poster: btoa('a frame'), image: btoa('framed') },
  });
  expect(engine.made?.safety?.status).toBe('clear');
  expect(engine.seen).toMatchObject({
    options: { safetyChecker: true, promptOptimizer: true },
    device: serveOptions.device,
  });
  expect(relay.asked.find(({ verb }) => verb === 'claim')?.body).toMatchObject({
    ...abilities,
    backend: 'wasm',
  });
  expect(await engine.seen?.image.text()).toBe('image bytes');
  expect(await listVideos()).toEqual([]);
  expect(await pendingUploads.all()).toEqual([]);
  expect(statuses).toEqual(['connecting', 'idle', 'working', 'uploading', 'idle']);
});

test('nothing is claimed while the studio has the GPU', async () => {
  const { opened, open } = gate();
  const studio = navigator.locks.request(gpuLock, () => opened);
  relay.submit(makeJob());
  serve();
  await expect.poll(() => state.status, soon).toBe('waiting');
  const claims = () => relay.asked.filter(({ verb }) => verb === 'claim');
  await expect.poll(() => claims().length, soon).toBe(1);
  // It only says that it is there.
  expect(claims()[0]?.body).toMatchObject({ paused: true });
  open();
  await studio;
  await expect.poll(() => outcomes, soon).toEqual([['completed', null]]);
});

test('a lost lease cancels the engine, and nothing is reported of the job', async () => {
  engine.script = untilCancelled;
  relay.submit(makeJob());
  serve();
  await isWorking();
  relay.leases.clear();
  await expect.poll(() => outcomes, soon).toEqual([['lost', null]]);
  expect(engine.cancels).toBe(1);
  expect(relay.verbs('fail', 'release', 'complete', 'output')).toEqual([]);
});

test('a job that comes when the studio has just taken the GPU is handed back, and taken later', async () => {
  serve();
  await expect.poll(() => relay.verbs('claim').length, soon).toBe(2);
  const { opened, open } = gate();
  const studio = navigator.locks.request(gpuLock, () => opened);
  relay.submit(makeJob());
  await expect.poll(() => state.status, soon).toBe('waiting');
  expect(relay.verbs('release', 'heartbeat', 'fail')).toEqual(['release']);
  relay.submit(makeJob());
  open();
  await studio;
  await expect.poll(() => outcomes, soon).toEqual([['completed', null]]);
});

test('stopping hands the lease back', async () => {
  engine.script = untilCancelled;
  relay.submit(makeJob());
  serve();
  await isWorking();
  loop.stop();
  await running;
  expect(outcomes).toEqual([['released', null]]);
  expect(relay.verbs('release', 'fail')).toEqual(['release']);
  expect(state).toEqual({ status: 'disconnected', error: null });
  expect(engine.closed).toBe(1);
});

test('a pause lets the job end and takes no other; a resume takes it', async () => {
  const { opened, open } = gate();
  engine.script = () => opened;
  relay.submit(makeJob(1));
  relay.submit(makeJob(2));
  serve();
  await isWorking();
  loop.pause();
  expect(state).toMatchObject({ next: 'pause' });
  open();
  await expect.poll(() => state.status, soon).toBe('paused');
  await new Promise((resolve) => setTimeout(resolve, 60));
  const claims = relay.asked.filter(({ verb, body }) => verb === 'claim' && !body.paused);
  expect(claims).toHaveLength(1);
  loop.resume();
  await expect.poll(() => outcomes, soon).toHaveLength(2);
});

test('a failure is reported with whether another attempt may succeed', async () => {
  const errors = [
    new KinoraError('LORA_WRONG_BASE', 'style was made for another model.'),
    new KinoraError('OUT_OF_MEMORY'),
    new KinoraError('MODEL_NOT_INSTALLED'),
  ];
  engine.script = async () => {
    throw errors.shift();
  };
  for (const n of [1, 2, 3, 4]) relay.submit(makeJob(n));
  serve();
  // The third says that this worker cannot work: it pauses itself.
  await expect.poll(() => state, soon).toMatchObject({ error: { code: 'MODEL_NOT_INSTALLED' } });
  expect(state.status).toBe('paused');
  const failures = relay.asked.filter(({ verb }) => verb === 'fail').map(({ body }) => body);
  expect(failures).toMatchObject([
    { code: 'LORA_WRONG_BASE', message: 'style was made for another model.', retryable: false },
    { code: 'OUT_OF_MEMORY', retryable: true },
    { code: 'MODEL_NOT_INSTALLED', retryable: true },
  ]);
  expect(relay.waiting).toHaveLength(1);
});

test('an adapter of the relay comes by its signed address; a missing one names itself', async () => {
  relay.files.set('/files/lora', new Blob(['lora bytes']));
  const there = { path: 'https://x/a.safetensors', scale: 0.5, from: 'relay', url: '/files/lora' };
  const gone = { ...there, path: 'https://x/b.safetensors', url: '/gone' };
  relay.submit(makeJob(1, [there as WorkerLora]));
  relay.submit(makeJob(2, [gone as WorkerLora]));
  serve();
  await expect
    .poll(() => outcomes, soon)
    .toEqual([
      ['completed', null],
      ['failed', 'LORA_MISSING'],
    ]);
  expect(engine.seen?.loras).toMatchObject([{ name: 'https://x/a.safetensors', scale: 0.5 }]);
  expect(await engine.seen?.loras[0]?.file.text()).toBe('lora bytes');
  expect(relay.asked.find(({ verb }) => verb === 'fail')?.body).toMatchObject({
    message: expect.stringContaining('https://x/b.safetensors'),
    retryable: false,
  });
});

test('a job that a dead tab has begun here goes on from what it saved, which ends with the job', async () => {
  await openRunFiles(servedRun(makeJob(1).id)).write('state-a', new Blob(['state']));
  const asked: unknown[] = [];
  engine.script = async ({ continuation }) => void asked.push(continuation);
  const steps = { parameters: { ...makeJob().parameters, num_inference_steps: 1 } };
  relay.submit({ ...makeJob(1), ...steps });
  relay.submit({ ...makeJob(2), ...steps });
  serve();
  await expect.poll(() => outcomes, soon).toHaveLength(2);
  expect(asked).toEqual(['resume', undefined]);
  expect(await listRuns()).toEqual([]);
});

const keptJob = (id: string): CurrentJob => ({
  id,
  attempt: 1,
  size: '1280*720',
  duration: 5,
  loras: 0,
  startedAt: 0,
});

test('a video that was not delivered survives the page and the studio, and is uploaded again', {
  tags: ['full'],
}, async () => {
  // The page that made it was closed after the work: its video and its note are there.
  const { id, lease_token } = makeJob();
  const videoFile = servedVideo(id);
  const completion = {
    lease_token,
    sha256: 'a'.repeat(64),
    bytes: 9,
    seed: 7,
    inference_ms: 1,
    model: 'tiny',
    precision: 'f32',
    encoder: 'webcodecs',
    safety: notChecked,
    prompt_optimization: null,
  } as const;
  await writeVideo(videoFile, new Blob(['the video']));
  await writeVideo(servedVideo('f'.repeat(32)), new Blob(['of no job']));
  await pendingUploads.keep({ id, job: keptJob(id), heartbeatMs: 10, videoFile, completion });
  const studio = new PredictionStore(new KinoraDatabase(`test-${crypto.randomUUID()}`));
  await sweep(studio);
  expect(await listVideos()).toContain(videoFile);
  await studio.database.delete();

  relay.leases.add(lease_token);
  // An answer of too many requests says nothing about the lease: all attempts of one connection, and the upload's first.
  for (let n = 0; n < 4; n++) relay.faults.push(['lease', 'RATE_LIMITED']);
  relay.faults.push(['output', 'RATE_LIMITED'], ['output', 'cut']);
  serve();
  await expect.poll(() => outcomes, soon).toEqual([['completed', null]]);
  expect(new TextDecoder().decode(relay.uploads.get(id))).toBe('the video');
  expect(relay.verbs('lease')).toHaveLength(5);
  expect(relay.verbs('complete')).toHaveLength(1);
  expect(await listVideos()).toEqual([]);
});

test('a video that the relay does not take is not computed again', async () => {
  relay.faults.push(['output', 'TOO_LARGE']);
  relay.faults.push(['output', 'OUTPUT_REJECTED'], ['output', 'OUTPUT_REJECTED']);
  relay.submit(makeJob(1));
  relay.submit(makeJob(2));
  serve();
  const ends = [
    ['failed', 'PARAMETER_INVALID'],
    ['failed', 'ENCODER_FAILED'],
  ];
  await expect.poll(() => outcomes, soon).toEqual(ends);
  const failures = relay.asked
    .filter(({ verb }) => verb === 'fail')
    .map(({ body }) => body.retryable);
  expect(failures).toEqual([false, false]);
  expect(await pendingUploads.all()).toEqual([]);
});

test('a job that no form could ask for is refused before anything is fetched', async () => {
  const { parameters } = makeJob();
  relay.submit({ ...makeJob(1), parameters: { ...parameters, duration: 4 } });
  relay.submit({
    ...makeJob(2),
    parameters: { ...parameters, prompt: 'a naked 12 year old girl' },
  });
  relay.submit({ ...makeJob(3), parameters: { ...parameters, last_image_at: 2 } });
  serve();
  const ends = ['PARAMETER_INVALID', 'PROMPT_REFUSED', 'PARAMETER_INVALID'];
  await expect.poll(() => outcomes, soon).toEqual(ends.map((code) => ['failed', code]));
  expect(engine.seen).toBeNull();
});

test('without its lease a kept video is dropped', async () => {
  const { id, lease_token } = makeJob();
  const videoFile = servedVideo(id);
  await writeVideo(videoFile, new Blob(['late']));
  const completion = { lease_token, bytes: 4 } as never;
  await pendingUploads.keep({ id, job: keptJob(id), heartbeatMs: 10, videoFile, completion });
  serve();
  await expect.poll(() => relay.verbs('claim').length, soon).toBeGreaterThan(0);
  expect(relay.verbs('output')).toEqual([]);
  expect(await listVideos()).toEqual([]);
  expect(await pendingUploads.all()).toEqual([]);
});

test('a relay that is away or being stopped is asked again; one that refuses is not', {
  tags: ['full'],
}, async () => {
  relay.faults.push(['me', 'cut'], ['claim', 'STORAGE_DOWN'], ['claim', 'SHUTTING_DOWN']);
  relay.faults.push(['claim', 'UNAUTHORIZED']);
  // So long the relay asks to be left alone.
  const waits = holdTimers(5000);
  serve();
  const ending = setInterval(waits.end, 20);
  await running;
  clearInterval(ending);
  waits.release();
  expect(statuses).toEqual([
    'connecting',
    'reconnecting',
    'idle',
    'reconnecting',
    'idle',
    'reconnecting',
    'idle',
    'refused',
  ]);
  expect(relay.verbs('me')).toHaveLength(4);
  expect(state).toMatchObject({ error: { message: 'The server does not take this token.' } });
});

test('a held claim ends when the worker stops, pauses or tries again', async () => {
  const claims = () => relay.verbs('claim').length;
  serve();
  await expect.poll(claims, soon).toBe(2);
  loop.retryNow();
  await expect.poll(claims, soon).toBe(3);
  loop.pause();
  await expect.poll(() => state.status, soon).toBe('paused');
  loop.resume();
  await expect.poll(() => state.status, soon).toBe('idle');
  loop.stop();
  await running;
  expect(state).toEqual({ status: 'disconnected', error: null });
});

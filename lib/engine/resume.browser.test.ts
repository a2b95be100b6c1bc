import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { cdp } from 'vitest/browser';
import type {
  Backend,
  EngineApi,
  EngineRequest,
  GenerationResult,
  ProgressEvent,
} from '../contract';
import { failureOf } from '../contract/testing/failure';
import { probeDevice } from '../gpu';
import { readRecord, recordId } from '../gpu/kernels/record';
import { KinoraDatabase } from '../predictions/database';
import { type EngineClient, runEngine } from '../predictions/engine-client';
import { listRuns, openRunFiles, removeRun } from '../predictions/run-files';
import { loadSetting } from '../predictions/settings';
import { listVideos, readVideo, removeVideo } from '../predictions/videos';
import { createWorkerClient } from '../predictions/worker-client';
import { inspectVideo } from '../video';
import { fetchStill, makeRequest } from './testing/runs';

let still: Blob;
beforeAll(async () => {
  still = await fetchStill();
});

let client: EngineClient;
/** A client whose engine has a worker of its own, which makes one frame per second. */
function openClient(): void {
  client = createWorkerClient<EngineApi>(
    'engine',
    () =>
      new Worker(new URL('./testing/saving-engine.ts', import.meta.url), {
        type: 'module',
        name: '1',
      }),
  );
}
afterEach(async () => {
  client.close();
  for (const file of await listVideos()) await removeVideo(file);
  for (const { id } of await listRuns()) await removeRun(id);
});

type Listener = (event: ProgressEvent) => void;
/** Steps enough that some come after the first state is written, and the fast decoder, which leaves the latents. */
const asked = (rest: Partial<EngineRequest> = {}) => {
  const steps = rest.device?.backend === 'webgpu' ? 6 : 12;
  return makeRequest(still, { num_inference_steps: steps }, { decoder: 'tiny' }, rest);
};
const run = (request: EngineRequest, listener: Listener = () => undefined) =>
  runEngine(client, request, new AbortController().signal, listener);

let encoded = { frames: 0, hash: '' };
new BroadcastChannel('encoded').onmessage = ({ data }) => {
  encoded = data;
};

/** The final latents by their checksum, and all encoded frames by theirs. */
async function made({ videoFile, frames }: GenerationResult) {
  await expect.poll(() => encoded.frames).toBe(frames);
  const file = await openRunFiles(videoFile.replace('.mp4', '')).read('clip-0');
  const header = (await file?.slice(0, 1000).text()) ?? '';
  return { latents: /"tensors":\[.*?\]/.exec(header)?.[0], frames: encoded };
}
const stepsOf = (events: readonly ProgressEvent[]) =>
  events.flatMap((event) => (event.type === 'step' ? [event.step] : []));

/** Whether a run is killed at an event, given those before it. */
type Ends = (event: ProgressEvent, before: readonly ProgressEvent[]) => boolean;
/** The next checkpoint may just be written. */
const inLaterStep: Ends = ({ type }, before) =>
  type === 'step' &&
  stepsOf(before).length > 1 &&
  before.some((event) => event.type === 'checkpoint');
const inDecode: Ends = (event) => event.type === 'frame' && event.frame === 3;

/** What uninterrupted runs made, by what computed them. */
const whole = new Map<Backend, ReturnType<typeof made>>();
function wholeOn(backend: Backend): ReturnType<typeof made> {
  const known = whole.get(backend) ?? run(asked({ device: { backend } })).then(made);
  whole.set(backend, known);
  return known;
}

async function killAndResume(backend: Backend, points: readonly Ends[]): Promise<void> {
  openClient();
  const expected = await wholeOn(backend);
  expect(expected).toEqual({
    latents: expect.stringContaining('sha256'),
    frames: { frames: 5, hash: expect.any(String) },
  });
  for (const ends of points) {
    const request = asked({ device: { backend } });
    const before: ProgressEvent[] = [];
    await new Promise<void>((resolve, reject) => {
      const late = () => reject(new Error('the run ended before it was killed'));
      void run(request, (event) => {
        if (ends(event, before)) {
          client.close();
          resolve();
        }
        before.push(event);
      }).then(late, late);
    });
    const events: ProgressEvent[] = [];
    const again = { ...request, continuation: 'resume' } as const;
    const result = await run(again, (event) => events.push(event));
    expect(await made(result)).toEqual(expected);
    expect(result.resumes).toBe(1);
    const types = events.map(({ type }) => type);
    expect(types).not.toContain('checkpoint-problem');
    // Nothing is said of the time before it is known what the earlier run has done.
    expect(types.indexOf('estimate')).toBeGreaterThan(types.indexOf('checkpoint'));
    const [next] = stepsOf(events);
    if (ends === inDecode) expect(next).toBeUndefined();
    else expect(next).toBeGreaterThan(1);
  }
}

describe('a run whose worker is killed goes on to the same latents and frames', () => {
  test('on the CPU', { tags: ['full'], timeout: 600_000 }, () =>
    killAndResume('wasm', [inLaterStep, inDecode]),
  );
});

describe('a GPU that is lost', { tags: ['full'] }, () => {
  const onGpu: Partial<EngineRequest> = { device: { backend: 'webgpu' } };
  const lose = new BroadcastChannel('lose');

  test('the run goes on by itself, once for each step', { timeout: 600_000 }, async () => {
    openClient();
    const expected = await wholeOn('webgpu');
    const events: ProgressEvent[] = [];
    const losses = [3, 5];
    const result = await run(asked(onGpu), (event) => {
      events.push(event);
      if (event.type !== 'step' || event.step !== losses[0]) return;
      losses.shift();
      lose.postMessage('now');
    });
    expect(await made(result)).toEqual(expected);
    expect(result.resumes).toBe(2);
    expect(Math.min(...stepsOf(events).slice(-2))).toBeGreaterThan(1);

    let steps = 0;
    const lostTwice = asked(onGpu);
    const twice = run(lostTwice, (event) => {
      if (event.type === 'step') steps += 1;
      if (event.type === 'step' || (event.type === 'phase' && event.phase === 'denoise' && steps)) {
        lose.postMessage('now');
      }
    });
    expect((await failureOf(twice)).code).toBe('DEVICE_LOST');
    expect(steps).toBe(1);
    // The user can still resume it.
    expect(await listRuns()).toContainEqual(expect.objectContaining({ id: lostTwice.id }));
  });
});

test('a run whose GPU is lost in a kernel of our own goes on without that kernel', {
  tags: ['full'],
  timeout: 600_000,
}, async () => {
  openClient();
  const lose = new BroadcastChannel('lose');
  const goesOn = new AbortController();
  const request = makeRequest(
    still,
    { num_inference_steps: 3 },
    {},
    { device: { backend: 'webgpu', kernels: 'exact' } },
  );
  const loaded: number[] = [];
  let steps = 0;
  const ended = runEngine(client, request, goesOn.signal, (event) => {
    if (event.type === 'phase' && event.phase === 'load') loaded.push(steps);
    if (event.type !== 'step' || event.step === 0) return;
    steps = event.step;
    if (steps === 1) lose.postMessage('in a kernel');
    // Decoding its frames would tell nothing more.
    else goesOn.abort();
  });
  expect((await failureOf(ended)).code).toBe('CANCELLED');
  lose.close();
  // It began twice, the second time from the checkpoint of the first step.
  expect([steps, loaded.at(-1)]).toEqual([2, 1]);
  const id = recordId(await probeDevice(), navigator.userAgent);
  const record = readRecord(await loadSetting(new KinoraDatabase(), id));
  const lost = Object.keys(record?.excluded ?? {});
  expect(lost).toEqual([expect.stringMatching(/^linear /)]);
  const { linear, attention } = record?.modes.exact?.winners ?? {};
  expect(attention).not.toBeNull();
  expect(linear?.key).toMatch(/^linear /);
  expect(lost).not.toContain(linear?.key);
});

test('a run that is paused frees the device, is finished early, and decoded again in full quality', {
  tags: ['full'],
}, async () => {
  openClient();
  const request = asked();
  const { api } = client.open();
  const paused = run(request, (event) => {
    if (event.type === 'step' && event.step === 2) void api.pause();
  });
  expect((await failureOf(paused)).code).toBe('PAUSED');
  expect((await api.counters()).liveBytes).toBe(0);
  expect(await listVideos()).toEqual([]);
  const [saved] = await listRuns();
  expect(saved).toMatchObject({ id: request.id, latents: false });

  const events: ProgressEvent[] = [];
  const finish = { ...request, continuation: 'finish' } as const;
  const early = await run(finish, (event) => events.push(event));
  expect(early).toMatchObject({ finishedEarly: true, frames: 5, applied: { decoder: 'tiny' } });
  expect(stepsOf(events)).toEqual([]);
  const [kept] = await listRuns();
  expect(kept).toMatchObject({ id: request.id, latents: true });
  expect(kept?.bytes).toBeLessThan(saved?.bytes ?? 0);

  // A refinement that is cancelled keeps the video and its latents.
  const inFull = { ...request.options, decoder: 'full' } as const;
  const refine = { ...request, options: inFull, continuation: 'refine' } as const;
  const cancelled = run(refine, (event) => {
    if (event.type === 'frame') void api.cancel();
  });
  expect((await failureOf(cancelled)).code).toBe('CANCELLED');
  expect((await inspectVideo(await readVideo(early.videoFile))).frames).toBe(5);
  // So does one that is refused, as the request or its adapters are others now.
  const otherwise = { ...refine, parameters: { ...refine.parameters, flow_shift: 9 } };
  expect((await failureOf(run(otherwise))).code).toBe('CHECKPOINT_MISMATCH');
  expect(await listRuns()).toMatchObject([{ id: request.id, latents: true }]);
  const full = await run(refine);
  expect(full).toMatchObject({ videoFile: early.videoFile, finishedEarly: true });
  expect(full.applied?.decoder).toBe('full');
  // What another video can go on from stays.
  expect(await listRuns()).toMatchObject([{ id: request.id, latents: false }]);
  expect((await failureOf(run(refine))).code).toBe('CHECKPOINT_INVALID');
  expect(await listVideos()).toEqual([full.videoFile]);
});

test('a run that is cancelled leaves nothing; one without storage is made, and says that it is unsaved', {
  tags: ['full'],
}, async () => {
  openClient();
  const { api } = client.open();
  const cancelled = run(asked(), ({ type }) => {
    if (type === 'checkpoint') void api.cancel();
  });
  expect((await failureOf(cancelled)).code).toBe('CANCELLED');
  expect(await listRuns()).toEqual([]);

  const { usage = 0 } = await navigator.storage.estimate();
  const session = cdp();
  const { origin } = location;
  await session.send('Storage.overrideQuotaForOrigin', { origin, quotaSize: usage + 1000 });
  const problems: ProgressEvent[] = [];
  try {
    const { frames } = await run(asked(), (event) => {
      if (event.type === 'checkpoint-problem') problems.push(event);
      // Room for the video, which is larger than that.
      if (event.type === 'frame' && event.frame === 1) {
        void session.send('Storage.overrideQuotaForOrigin', { origin });
      }
    });
    expect(frames).toBe(5);
  } finally {
    await session.send('Storage.overrideQuotaForOrigin', { origin });
  }
  const sentence = expect.stringContaining('the storage is full');
  expect(problems).toEqual([{ type: 'checkpoint-problem', problem: 'unsaved', sentence }]);
  expect(await listRuns().then((runs) => runs.filter(({ latents }) => latents))).toEqual([]);
});

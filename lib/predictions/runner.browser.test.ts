import { afterEach, beforeEach, expect, test } from 'vitest';
import { cdp } from 'vitest/browser';
import type { EngineApi, EngineRequest } from '../contract/engine';
import { KinoraError } from '../contract/errors';
import type { GenerationResult, ProgressEvent } from '../contract/progress';
import { parseParameters, sizeInPixels } from '../contract/request';
import { fullMemory } from '../contract/testing/memory';
import { readImageFile } from '../video/image';
import { KinoraDatabase } from './database';
import type { EngineClient } from './engine-client';
import { gpuLock, predictionLock } from './locks';
import { type RunInput, Runner } from './runner';
import { PredictionStore } from './store';
import { listVideos, readVideo, removeVideo, writeVideo } from './videos';

/**
 * An engine that implements EngineApi without computing: it reports steps, can be cancelled, and writes a
 * small file to the real OPFS. The tests in e2e/ use the real engine.
 */
class FakeEngine implements EngineClient {
  opened = 0;
  closed = 0;
  seen: EngineRequest | null = null;
  /** Called before each step of the next run. */
  script: (request: EngineRequest) => Promise<void> = async () => {};
  crash: (error: KinoraError) => void = () => {};
  #cancelled = false;
  #early = false;

  open() {
    this.opened += 1;
    const crashed = new Promise<never>((_, reject) => {
      this.crash = reject;
    });
    crashed.catch(() => {});
    return { api: this.#api, crashed };
  }

  close() {
    this.closed += 1;
  }

  readonly #api = {
    generate: (request: EngineRequest, onProgress: (event: ProgressEvent) => void) =>
      this.#generate(request, onProgress),
    cancel: async () => {
      this.#cancelled = true;
    },
    finishEarly: async () => {
      this.#early = true;
    },
    pause: async () => {},
    resume: async () => {},
  } as unknown as EngineApi;

  async #generate(
    request: EngineRequest,
    onProgress: (event: ProgressEvent) => void,
  ): Promise<GenerationResult> {
    this.seen = request;
    this.#cancelled = false;
    this.#early = false;
    const { parameters } = request;
    const steps = parameters.num_inference_steps;
    onProgress({ type: 'phase', phase: 'denoise', clip: 0, clips: 1 });
    for (let step = 1; step <= steps && !this.#early; step++) {
      await this.script(request);
      if (this.#cancelled) throw new KinoraError('CANCELLED');
      onProgress({
        type: 'step',
        step,
        steps,
        clip: 0,
        clips: 1,
        secondsPerStep: 0.1,
        secondsRemaining: null,
      });
    }
    const video = new Blob(['\0\0\0\x18ftypisom', request.id], { type: 'video/mp4' });
    await writeVideo(`${request.id}.mp4`, video);
    return {
      videoFile: `${request.id}.mp4`,
      videoBytes: video.size,
      size: parameters.size,
      ...sizeInPixels(parameters.size),
      frames: 121,
      seed: parameters.seed,
      model: request.model,
      backend: request.backend,
      encoder: 'webcodecs',
      finishedEarly: this.#early,
      memory: fullMemory,
      timings: { load: 0, text: 0, image: 0, denoise: 1, decode: 0, finish: 0, total: 1 },
    };
  }
}

/** Long enough for a slow machine. */
const soon = { timeout: 30_000 };
let store: PredictionStore;
let engine: FakeEngine;
let runner: Runner;

beforeEach(() => {
  store = new PredictionStore(new KinoraDatabase(`test-${crypto.randomUUID()}`));
  engine = new FakeEngine();
  runner = new Runner(store, engine, readImageFile);
});

afterEach(async () => {
  await store.database.delete();
  for (const file of await listVideos()) await removeVideo(file);
});

async function drawImage(): Promise<Blob> {
  const canvas = new OffscreenCanvas(640, 360);
  const context = canvas.getContext('2d');
  if (!context) throw new Error('no canvas');
  context.fillStyle = 'teal';
  context.fillRect(0, 0, 640, 360);
  return canvas.convertToBlob({ type: 'image/png' });
}

async function input(parameters: Partial<RunInput['parameters']> = {}): Promise<RunInput> {
  return {
    image: await drawImage(),
    imageName: 'still.png',
    parameters: { prompt: 'a boat', num_inference_steps: 3, ...parameters },
    model: 'tiny',
    backend: 'wasm',
    loras: [],
  };
}

/** A promise and the function that resolves it. */
function gate(): { opened: Promise<void>; open: () => void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

test('the row exists with its seed before the engine starts, and ends with the video', async () => {
  const early: (string | undefined)[] = [];
  engine.script = async ({ id }) => {
    early.push((await store.get(id))?.status);
  };
  const events: string[] = [];
  const { id, ended } = await runner.start(await input(), ({ type }) => events.push(type));
  const created = await store.get(id);
  expect(id).toMatch(/^[0-9a-f]{32}$/);
  expect(created?.parameters.seed).toBeGreaterThanOrEqual(0);

  const end = await ended;
  if (end.status !== 'completed') throw new Error(`it ended ${end.status}`);
  expect(early).toEqual(['processing', 'processing', 'processing']);
  expect(events).toEqual(['phase', 'step', 'step', 'step']);
  expect(engine.seen?.parameters.seed).toBe(created?.parameters.seed);
  expect(end.result.seed).toBe(created?.parameters.seed);
  expect((await readVideo(end.result.videoFile)).size).toBe(end.result.videoBytes);
  expect(await store.get(id)).toEqual(end);
  expect(runner.getSnapshot()).toEqual({ status: 'idle' });
  expect((await store.source(id))?.thumbnail?.type).toBe('image/jpeg');
});

test('progress is an external store, and a run holds its locks', async () => {
  const { opened, open } = gate();
  engine.script = () => opened;
  let changes = 0;
  const unsubscribe = runner.subscribe(() => {
    changes += 1;
  });
  const { id, ended } = await runner.start(await input());
  await expect.poll(() => runner.getSnapshot().status, soon).toBe('running');
  expect(runner.getSnapshot()).toBe(runner.getSnapshot());
  const held = async () => (await navigator.locks.query()).held?.map(({ name }) => name);
  expect(await held()).toEqual(expect.arrayContaining([gpuLock, predictionLock(id)]));
  await expect(runner.start(await input())).rejects.toMatchObject({ code: 'BUSY' });
  open();
  await ended;
  unsubscribe();
  expect(changes).toBeGreaterThanOrEqual(6);
  expect(await held()).not.toContain(gpuLock);
});

test('cancel ends a run with CANCELLED and leaves nothing of its video', async () => {
  const { opened, open } = gate();
  engine.script = () => opened;
  const { id, ended } = await runner.start(await input());
  await expect.poll(() => runner.getSnapshot().status, soon).toBe('running');
  runner.cancel();
  expect(runner.getSnapshot()).toMatchObject({ ending: 'cancel' });
  open();
  expect(await ended).toMatchObject({ id, status: 'failed', error: { code: 'CANCELLED' } });
  expect(await listVideos()).toEqual([]);
  expect(runner.getSnapshot().status).toBe('idle');
  expect(engine.closed).toBe(0);
});

test('while another tab holds the GPU lock, a run waits and can be cancelled', async () => {
  const { opened, open } = gate();
  const other = navigator.locks.request(gpuLock, () => opened);
  const { id, ended } = await runner.start(await input());
  await expect
    .poll(() => runner.getSnapshot(), soon)
    .toMatchObject({ status: 'waiting', elsewhere: true });
  expect((await store.get(id))?.status).toBe('created');
  runner.cancel();
  expect(await ended).toMatchObject({ status: 'failed', error: { code: 'CANCELLED' } });
  expect(engine.opened).toBe(0);

  const second = await runner.start(await input());
  await expect.poll(() => runner.getSnapshot(), soon).toMatchObject({ elsewhere: true });
  open();
  await other;
  expect((await second.ended).status).toBe('completed');
});

test('a failure is stored with its remedy; the engine is closed only after a fatal one', async () => {
  engine.script = async () => {
    throw new KinoraError('LATENTS_NOT_FINITE', 'The latents became NaN at step 1.');
  };
  const first = await (await runner.start(await input())).ended;
  expect(first).toMatchObject({
    status: 'failed',
    error: { code: 'LATENTS_NOT_FINITE', message: 'The latents became NaN at step 1.' },
  });
  expect(engine.closed).toBe(0);

  engine.script = async ({ id }) => {
    await writeVideo(`${id}.mp4`, new Blob(['half']));
    throw new KinoraError('DEVICE_LOST');
  };
  const second = await (await runner.start(await input())).ended;
  expect(second).toMatchObject({ status: 'failed', error: { code: 'DEVICE_LOST' } });
  expect(engine.closed).toBe(1);
  expect(await listVideos()).toEqual([]);
});

test('a worker that crashes ends the run', async () => {
  engine.script = () => new Promise(() => {});
  const { ended } = await runner.start(await input());
  await expect.poll(() => runner.getSnapshot().status, soon).toBe('running');
  engine.crash(new KinoraError('INTERNAL', 'The engine stopped unexpectedly.'));
  expect(await ended).toMatchObject({ status: 'failed', error: { code: 'INTERNAL' } });
  expect(engine.closed).toBe(1);
});

test('a full disk at the video is STORAGE_FULL and leaves nothing', async () => {
  const session = cdp();
  const { origin } = location;
  engine.script = async ({ id }) => {
    const { usage = 0 } = await navigator.storage.estimate();
    await session.send('Storage.overrideQuotaForOrigin', { origin, quotaSize: usage + 1_000_000 });
    await writeVideo(`${id}.mp4`, new Blob([new Uint8Array(20_000_000)]));
  };
  try {
    const { ended } = await runner.start(await input());
    expect(await ended).toMatchObject({ status: 'failed', error: { code: 'STORAGE_FULL' } });
    expect(await listVideos()).toEqual([]);
  } finally {
    await session.send('Storage.overrideQuotaForOrigin', { origin });
  }
});

test('when the row cannot be made, nothing starts and the next run can', async () => {
  store.database.close();
  await expect(runner.start(await input())).rejects.toMatchObject({ code: 'INTERNAL' });
  expect(engine.opened).toBe(0);
  expect(runner.getSnapshot().status).toBe('idle');
  await store.database.open();
  expect((await (await runner.start(await input())).ended).status).toBe('completed');
});

test('the next page finds an interrupted run, which runs again with the same input', async () => {
  const lora = { name: 'style.safetensors', file: new Blob(['lora bytes']) };
  const requested = await input({ loras: [{ path: 'style.safetensors', scale: 1.5 }], seed: 77 });
  // The page was closed: its row exists, but nothing holds its lock.
  const id = 'ab'.repeat(16);
  await store.create(
    {
      id,
      model: 'tiny',
      profile: 'standard',
      backend: 'wasm',
      parameters: parseParameters(requested.parameters),
      createdAt: '2025-01-01T00:00:00.000Z',
      status: 'created',
    },
    { image: requested.image, imageName: 'still.png', loras: [lora] },
  );
  await store.dispatch(id, { type: 'started', at: '2025-01-01T00:00:01.000Z' });
  await writeVideo(`${id}.mp4.part`, new Blob(['half a video']));

  expect(await runner.recover()).toBe(1);
  expect(await store.get(id)).toMatchObject({ status: 'failed', error: { code: 'INTERRUPTED' } });
  expect(await listVideos()).toEqual([]);

  const again = await runner.runAgain(id);
  expect(again.id).not.toBe(id);
  const end = await again.ended;
  expect(end).toMatchObject({ status: 'completed', result: { seed: 77 } });
  expect(engine.seen?.loras[0]).toMatchObject({ name: 'style.safetensors', scale: 1.5 });
  expect(await engine.seen?.loras[0]?.file.text()).toBe('lora bytes');
  expect(new Uint8Array((await engine.seen?.image.arrayBuffer()) ?? [])).toEqual(
    new Uint8Array(await requested.image.arrayBuffer()),
  );
});

test('finishing early keeps the steps so far', async () => {
  const { opened, open } = gate();
  engine.script = () => opened;
  const { ended } = await runner.start(await input());
  await expect.poll(() => runner.getSnapshot().status, soon).toBe('running');
  await runner.finishEarly();
  open();
  expect(await ended).toMatchObject({ status: 'completed', result: { finishedEarly: true } });
});

test('invalid input creates no row', async () => {
  await expect(runner.start(await input({ prompt: ' ' }))).rejects.toMatchObject({
    code: 'PROMPT_EMPTY',
  });
  await expect(runner.start(await input({ duration: 4 }))).rejects.toMatchObject({
    code: 'PARAMETER_INVALID',
    message: 'duration must be a whole number from 5 to 10.',
  });
  const unfit = await input({ loras: [{ path: 'a', scale: 1 }] });
  await expect(runner.start(unfit)).rejects.toMatchObject({ code: 'REQUEST_INVALID' });
  expect(await store.list()).toEqual([]);
  expect(runner.getSnapshot().status).toBe('idle');
});

test('an unusable image is rejected by its bytes: nothing is decoded, stored or started', async () => {
  // The header of a PNG says its size; 8000 × 6000 are 48 megapixels.
  const large = new Uint8Array(await (await drawImage()).arrayBuffer());
  new DataView(large.buffer).setUint32(16, 8000);
  new DataView(large.buffer).setUint32(20, 6000);
  const images: [string, Blob][] = [
    ['IMAGE_UNREADABLE', new Blob(['no image'])],
    ['IMAGE_TOO_LARGE', new Blob([new Uint8Array(20_000_001)])],
    ['IMAGE_TOO_MANY_PIXELS', new Blob([large])],
  ];
  for (const [code, image] of images) {
    await expect(runner.start({ ...(await input()), image })).rejects.toMatchObject({ code });
  }
  expect(await store.list()).toEqual([]);
  expect(engine.opened).toBe(0);
  expect(runner.getSnapshot().status).toBe('idle');
});

test('a video that cannot be removed does not hide why the run failed', async () => {
  let writing: FileSystemWritableFileStream | undefined;
  engine.script = async ({ id }) => {
    await writeVideo(`${id}.mp4`, new Blob(['half']));
    const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle('videos');
    // An open writer locks the file.
    writing = await (await folder.getFileHandle(`${id}.mp4`)).createWritable();
    throw new KinoraError('LATENTS_NOT_FINITE');
  };
  const { id, ended } = await runner.start(await input());
  expect(await ended).toMatchObject({ id, error: { code: 'LATENTS_NOT_FINITE' } });
  expect(await store.get(id)).toMatchObject({ status: 'failed' });
  expect(await listVideos()).toContain(`${id}.mp4`);
  await writing?.abort();
  await runner.recover();
  expect(await listVideos()).toEqual([]);
});

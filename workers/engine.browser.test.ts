import * as Comlink from 'comlink';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { cdp } from 'vitest/browser';
import type {
  EngineApi,
  EngineRequest,
  KinoraError,
  ParametersInput,
  ProgressEvent,
} from '../lib/contract';
import { installErrorTransfer } from '../lib/contract/error-transfer';
import { listVideos, readVideo, removeVideo } from '../lib/predictions/videos';
import { inspectVideo, readVideoMetadata } from '../lib/video';
import {
  failureOf,
  fetchBlob,
  fetchStill,
  generate as generateWith,
  makeRequest,
} from './testing/runs';

installErrorTransfer();

let worker: Worker;
let engine: Comlink.Remote<EngineApi>;
let still: Blob;

beforeAll(async () => {
  worker = new Worker(new URL('./engine.ts', import.meta.url), { type: 'module' });
  engine = Comlink.wrap<EngineApi>(worker);
  still = await fetchStill();
});
afterAll(() => worker.terminate());
afterEach(async () => {
  for (const file of await listVideos()) await removeVideo(file);
});

const loraFile = (name: string) => fetchBlob(`/lib/models/wan22/goldens/loras/${name}.safetensors`);

const request = (...changes: [Partial<ParametersInput>?, Partial<EngineRequest>?]) =>
  makeRequest(still, ...changes);
type Listener = (event: ProgressEvent) => void | Promise<void>;
const generate = (...run: [EngineRequest, ProgressEvent[]?, Listener?]) =>
  generateWith(engine, ...run);

/** A run that must fail: its error, after making sure that nothing is left of it. */
async function refused(asked: EngineRequest): Promise<KinoraError> {
  const error = await failureOf(generate(asked));
  expect(await listVideos()).toEqual([]);
  expect((await engine.counters()).liveBytes).toBe(0);
  return error;
}

const stepsOf = (events: readonly ProgressEvent[]) =>
  events.filter((event) => event.type === 'step').length;

describe('a video', () => {
  test('is 1280×720, 121 frames, fast to start, and says how it was made', {
    tags: ['full'],
  }, async () => {
    const asked = request({ negative_prompt: 'blurry', guidance_scale: 3, flow_shift: 4 });
    const events: ProgressEvent[] = [];
    const result = await generate(asked, events);
    expect(result).toMatchObject({
      videoFile: `${asked.id}.mp4`,
      size: '1280*720',
      width: 1280,
      height: 720,
      frames: 121,
      seed: 42,
      model: 'tiny',
      profile: 'standard',
      backend: 'wasm',
      encoder: 'webcodecs',
      finishedEarly: false,
      memory: { blocks: 2, residentBlocks: 2, decodeTiles: 1, replans: 0 },
    });
    expect(events.filter((event) => event.type === 'plan')).toHaveLength(1);
    expect(await listVideos()).toEqual([result.videoFile]);
    const file = await readVideo(result.videoFile);
    expect(file.size).toBe(result.videoBytes);
    expect(await inspectVideo(file)).toMatchObject({
      width: 1280,
      height: 720,
      frames: 121,
      frameRate: 24,
      fastStart: true,
    });
    expect(await readVideoMetadata(file)).toMatchObject({
      id: asked.id,
      model: 'tiny',
      profile: 'standard',
      prompt: 'a boat on a lake',
      negative_prompt: 'blurry',
      seed: 42,
      num_inference_steps: 1,
      guidance_scale: 3,
      flow_shift: 4,
      size: '1280*720',
      duration: 5,
    });
    const phases = events.flatMap((event) => (event.type === 'phase' ? [event.phase] : []));
    expect([...new Set(phases)]).toEqual(['load', 'text', 'image', 'denoise', 'decode', 'finish']);
    const { total, ...parts } = result.timings;
    const sum = Object.values(parts).reduce((a, b) => a + b, 0);
    expect(Math.abs(sum - total)).toBeLessThan(0.2);
    expect((await engine.counters()).liveBytes).toBe(0);
  });

  test('stands upright where that was asked for, and a LoRA takes part', {
    tags: ['full'],
  }, async () => {
    const file = await loraFile('a_peft');
    const result = await generate(
      request(
        { size: '720*1280', loras: [{ path: 'a_peft.safetensors', scale: 1.5 }] },
        {
          profile: 'ultra-fast',
          loras: [{ name: 'a_peft.safetensors', file, scale: 1.5 }],
        },
      ),
    );
    const video = await readVideo(result.videoFile);
    expect(await inspectVideo(video)).toMatchObject({ width: 720, height: 1280, frames: 121 });
    const { loras } = await readVideoMetadata(video);
    expect(loras).toEqual([{ path: 'a_peft.safetensors', scale: 1.5 }]);
    // The variant is in the result and in the file.
    expect(result.profile).toBe('ultra-fast');
    expect((await readVideoMetadata(video)).profile).toBe('ultra-fast');
    expect((await engine.counters()).liveBytes).toBe(0);
  });
});

describe('a second model family', () => {
  let fading: Worker;
  let other: Comlink.Remote<EngineApi>;
  beforeAll(() => {
    fading = new Worker(new URL('./testing/fade-engine.ts', import.meta.url), { type: 'module' });
    other = Comlink.wrap<EngineApi>(fading);
  });
  afterAll(() => fading.terminate());

  test('runs in the same engine, in two clips, with steps around it, to an MP4', async () => {
    const events: ProgressEvent[] = [];
    const asked = request(
      { num_inference_steps: 3, guidance_scale: 2 },
      { model: 'fade', profile: 'ultra-fast' },
    );
    const report = Comlink.proxy((event: ProgressEvent) => void events.push(event));
    const result = await other.generate(asked, report);
    expect(result).toMatchObject({ model: 'fade', profile: 'ultra-fast', frames: 121 });
    const file = await readVideo(result.videoFile);
    expect(await inspectVideo(file)).toMatchObject({ width: 1280, height: 720, frames: 121 });
    expect(await readVideoMetadata(file)).toMatchObject({ model: 'fade', profile: 'ultra-fast' });
    const steps = events.flatMap((event) =>
      event.type === 'step' ? [`${event.clip}:${event.step}`] : [],
    );
    expect(steps).toEqual(['0:1', '0:2', '0:3', '1:1', '1:2', '1:3']);
    expect(events.some((event) => event.type === 'preview')).toBe(true);
    const { counting } = result.findings ?? {};
    // The step saw every frame: the image, 3/8 of it, black at the end of the first clip and from then on.
    expect(counting).toMatchObject({ frames: 121, expected: 121 });
    const means = counting?.means as readonly number[];
    [1, 0.375, 0, 0, 0].forEach((mean, i) => {
      expect(Math.abs((means[i] ?? 1) - mean)).toBeLessThan(0.02);
    });
    expect((await other.counters()).liveBytes).toBe(0);
  });

  test('does not know the models of another one', async () => {
    const error = await failureOf(other.load('tiny', 'wasm'));
    expect(error.code).toBe('MODEL_UNKNOWN');
  });
});

describe('bad input ends with its code and leaves nothing', () => {
  const png = (width: number, height: number) => {
    const bytes = new Uint8Array(2000);
    bytes.set([
      0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52,
    ]);
    new DataView(bytes.buffer).setUint32(16, width);
    new DataView(bytes.buffer).setUint32(20, height);
    bytes.set([8, 2], 24);
    return new Blob([bytes]);
  };

  test.each([
    ['zero bytes', () => new Blob([]), 'IMAGE_EMPTY'],
    ['a text', () => new Blob(['no picture at all'.repeat(20)]), 'IMAGE_UNREADABLE'],
    ['an image cut in half', () => still.slice(0, still.size / 2), 'IMAGE_TRUNCATED'],
    ['over 40 megapixels', () => png(10_000, 5000), 'IMAGE_TOO_MANY_PIXELS'],
    ['over 20 MB', () => new Blob([still, new Uint8Array(20_000_000)]), 'IMAGE_TOO_LARGE'],
  ])('%s', async (_, image, code) => {
    expect((await refused(request({}, { image: image() }))).code).toBe(code);
  });

  test('an unknown model', async () => {
    const error = await refused(request({}, { model: 'wan9' }));
    expect(error).toMatchObject({ code: 'MODEL_UNKNOWN', message: 'There is no model "wan9".' });
    expect((await failureOf(engine.load('../secret', 'wasm'))).code).toBe('MODEL_UNKNOWN');
  });

  test('a model whose weights are not there', async () => {
    const error = await refused(request({}, { model: 'wan2.2-ti2v-5b' }));
    expect(error.code).toBe('MODEL_NOT_INSTALLED');
    expect(error.remedy).not.toBe('');
  });

  test('a LoRA of another base: both shapes are named', async () => {
    const file = await loraFile('wrong_base_14b');
    const loras = [{ name: 'wrong_base_14b.safetensors', file, scale: 1 }];
    const error = await refused(request({}, { loras }));
    expect(error.code).toBe('LORA_WRONG_BASE');
    expect(error.message).toContain('[5120,5120]');
    expect(error.message).toContain('[64,64]');
  });

  test.each([
    ['a text', () => new Blob(['not a LoRA, but long enough for a header'])],
    ['nothing', () => new Blob([])],
  ])('a LoRA that is %s', async (_, file) => {
    const loras = [{ name: 'junk.safetensors', file: file(), scale: 1 }];
    const error = await refused(request({}, { loras }));
    expect(error.code).toBe('LORA_INVALID');
    expect(error.message).toContain('junk.safetensors');
  });
});

describe('while it runs', () => {
  test('a second one is refused with BUSY, and so is unloading', async () => {
    const first = failureOf(generate(request()));
    expect((await failureOf(generate(request()))).code).toBe('BUSY');
    expect((await failureOf(engine.unload())).code).toBe('BUSY');
    await engine.cancel();
    expect((await first).code).toBe('CANCELLED');
  });

  test('a pause holds it, resuming lets it go on, finishing early gives a video', {
    tags: ['full'],
  }, async () => {
    const events: ProgressEvent[] = [];
    let paused = () => {};
    const isPaused = new Promise<void>((resolve) => {
      paused = resolve;
    });
    let goneOn = () => {};
    const isGoneOn = new Promise<void>((resolve) => {
      goneOn = resolve;
    });
    const running = generate(request({ num_inference_steps: 40 }), events, (event) => {
      if (event.type === 'step' && event.step === 1) void engine.pause();
      if (event.type === 'paused') event.paused ? paused() : goneOn();
    });
    await isPaused;
    const held = stepsOf(events);
    expect(held).toBeLessThan(40);
    await new Promise((resolve) => setTimeout(resolve, 400));
    expect(stepsOf(events)).toBe(held);
    await engine.resume();
    await isGoneOn;
    await engine.finishEarly();
    const result = await running;
    expect(result).toMatchObject({ finishedEarly: true, frames: 121 });
    expect(stepsOf(events)).toBeGreaterThan(held);
    expect(stepsOf(events)).toBeLessThan(40);
    expect(await inspectVideo(await readVideo(result.videoFile))).toMatchObject({ frames: 121 });
  });

  test('cancelling while it is paused', async () => {
    const running = generate(request({ num_inference_steps: 40 }), [], (event) => {
      if (event.type === 'step' && event.step === 1) void engine.pause();
      if (event.type === 'paused' && event.paused) void engine.cancel();
    });
    expect((await failureOf(running)).code).toBe('CANCELLED');
    expect(await listVideos()).toEqual([]);
    expect((await engine.counters()).liveBytes).toBe(0);
  });

  test.each(['load', 'text', 'decode'] as const)('cancelling in %s', async (phase) => {
    const running = generate(request(), [], (event) => {
      if (event.type === 'phase' && event.phase === phase) void engine.cancel();
    });
    expect((await failureOf(running)).code).toBe('CANCELLED');
    expect(await listVideos()).toEqual([]);
    expect((await engine.counters()).liveBytes).toBe(0);
  });

  test('a full disk is STORAGE_FULL and leaves nothing', { tags: ['full'] }, async () => {
    const session = cdp();
    const { origin } = location;
    const { usage = 0 } = await navigator.storage.estimate();
    await session.send('Storage.overrideQuotaForOrigin', { origin, quotaSize: usage + 1000 });
    try {
      expect((await refused(request())).code).toBe('STORAGE_FULL');
    } finally {
      await session.send('Storage.overrideQuotaForOrigin', { origin });
    }
  });
});

/** Runs `body` with an engine of its own, in a worker where `prelude` ran first. */
async function inWorld(
  prelude: string,
  body: (engine: Comlink.Remote<EngineApi>) => Promise<void>,
): Promise<void> {
  // The query makes the test server serve it as a worker's module.
  const url = new URL('/workers/engine.ts?worker_file&type=module', location.href).href;
  const script = `${prelude}; await import(${JSON.stringify(url)}); postMessage('ready');`;
  const address = URL.createObjectURL(new Blob([script], { type: 'text/javascript' }));
  const other = new Worker(address, { type: 'module' });
  try {
    await new Promise((resolve, reject) => {
      other.onmessage = resolve;
      other.onerror = (event) => reject(new Error(event.message));
    });
    await body(Comlink.wrap<EngineApi>(other));
  } finally {
    other.terminate();
    URL.revokeObjectURL(address);
  }
}

describe('encoders', () => {
  // A whole video of this size takes ffmpeg half a minute; lib/video tests its files.
  test('a browser without WebCodecs encodes with ffmpeg, unless WebCodecs was asked for', () =>
    inWorld('delete self.VideoEncoder', async (engine) => {
      let frames = 0;
      const running = engine.generate(
        request(),
        Comlink.proxy((event: ProgressEvent) => {
          if (event.type !== 'frame') return;
          frames = event.frame;
          if (frames === 4) void engine.cancel();
        }),
      );
      expect((await failureOf(running)).code).toBe('CANCELLED');
      expect(frames).toBeGreaterThanOrEqual(4);
      expect(await listVideos()).toEqual([]);
      const asked = request({}, { encoder: 'webcodecs' });
      const error = await failureOf(
        engine.generate(
          asked,
          Comlink.proxy(() => undefined),
        ),
      );
      expect(error.toRecord()).toEqual({
        code: 'ENCODER_FAILED',
        message: 'This browser cannot encode H.264 at 1280×720.',
        remedy: 'Use Chrome, Edge or Safari, or the ffmpeg encoder.',
      });
      expect((await engine.counters()).liveBytes).toBe(0);
    }));

  test('an encoder that dies on its way is ENCODER_FAILED and leaves nothing', () =>
    inWorld(
      `self.VideoEncoder = class extends VideoEncoder {
        given = 0;
        encode(...frame) {
          this.given += 1;
          if (this.given === 5) this.close();
          super.encode(...frame);
        }
      }`,
      async (engine) => {
        const events: ProgressEvent[] = [];
        const report = Comlink.proxy((event: ProgressEvent) => {
          events.push(event);
        });
        const error = await failureOf(engine.generate(request(), report));
        expect(error.code).toBe('ENCODER_FAILED');
        expect(error.message).toContain('closed codec');
        const frames = events.filter((event) => event.type === 'frame').length;
        expect(frames).toBeGreaterThan(0);
        expect(frames).toBeLessThan(121);
        expect(await listVideos()).toEqual([]);
        expect((await engine.counters()).liveBytes).toBe(0);
      },
    ));
});

describe('on the GPU', { tags: ['full'] }, () => {
  test('a device that is lost is DEVICE_LOST, and the next run gets a fresh one', () =>
    inWorld(
      `const request = GPUAdapter.prototype.requestDevice;
      GPUAdapter.prototype.requestDevice = async function (...options) {
        const device = await request.apply(this, options);
        new BroadcastChannel('lose').onmessage = () => device.destroy();
        return device;
      }`,
      async (engine) => {
        const channel = new BroadcastChannel('lose');
        const report = Comlink.proxy((event: ProgressEvent) => {
          if (event.type === 'phase' && event.phase === 'image') channel.postMessage('now');
        });
        const error = await failureOf(engine.generate(request({}, { backend: 'webgpu' }), report));
        channel.close();
        expect(error.code).toBe('DEVICE_LOST');
        expect(await listVideos()).toEqual([]);
        expect((await engine.counters()).liveBytes).toBe(0);
        // The next run computes: a step comes, and only then is it cancelled.
        const next = Comlink.proxy((event: ProgressEvent) => {
          if (event.type === 'step') void engine.cancel();
        });
        const ended = await failureOf(engine.generate(request({}, { backend: 'webgpu' }), next));
        expect(ended.code).toBe('CANCELLED');
      },
    ));

  test('a GPU with wrong numbers is refused, every time', () =>
    inWorld(
      `Object.defineProperty(GPUAdapter.prototype, 'info', {
        get: () => ({ vendor: 'acme', architecture: 'one', device: '', description: '', subgroupMinSize: 4 }),
      });
      const map = GPUBuffer.prototype.getMappedRange;
      GPUBuffer.prototype.getMappedRange = function (...range) {
        const bytes = map.apply(this, range);
        if (this.usage & GPUBufferUsage.MAP_READ) new Float32Array(bytes)[0] += 1;
        return bytes;
      };`,
      async (engine) => {
        for (let attempt = 0; attempt < 2; attempt++) {
          const error = await failureOf(engine.load('tiny', 'webgpu'));
          expect(error.code).toBe('GPU_UNRELIABLE');
          expect(error.message).toContain('attention');
          expect((await engine.counters()).liveBytes).toBe(0);
        }
      },
    ));

  test('cancelling in the loop frees its memory', async () => {
    await engine.load('tiny', 'webgpu');
    const before = await engine.counters();
    let during = 0;
    const running = generate(
      request({ num_inference_steps: 40 }, { backend: 'webgpu' }),
      [],
      async (event) => {
        if (event.type !== 'step' || event.step !== 2) return;
        during = (await engine.counters()).liveBytes;
        await engine.cancel();
      },
    );
    expect((await failureOf(running)).code).toBe('CANCELLED');
    expect(during).toBeGreaterThan(before.liveBytes);
    const after = await engine.counters();
    expect(after.liveBytes).toBe(before.liveBytes);
    expect(await listVideos()).toEqual([]);
    await engine.unload();
    expect((await engine.counters()).liveBytes).toBe(0);
  });
});

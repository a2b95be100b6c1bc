import * as Comlink from 'comlink';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  type EngineApi,
  type EngineRequest,
  installTransferHandlers,
  type KinoraError,
  type ParametersInput,
  type ProgressEvent,
  type RunOptions,
  sha256,
} from '../contract';
import { failureOf } from '../contract/testing/failure';
import { probeDevice } from '../gpu';
import { twoExpertsLora, twoExpertsManifest } from '../models/testing/two-experts/files';
import type { Paces } from '../pipeline/estimate/estimator';
import { KinoraDatabase } from '../predictions/database';
import { listRuns, removeRun } from '../predictions/run-files';
import { loadSetting, saveSetting } from '../predictions/settings';
import { listVideos, readVideo, removeVideo } from '../predictions/videos';
import { decodeImage, frameImage, inspectVideo } from '../video';
import { pacesKey } from './estimate';
import { fetchBlob, fetchStill, generate as generateWith, makeRequest } from './testing/runs';

installTransferHandlers();

let worker: Worker;
let engine: Comlink.Remote<EngineApi>;
let still: Blob;

beforeAll(async () => {
  // Its name is the number of frames per second.
  worker = new Worker(new URL('./testing/short-engine.ts', import.meta.url), {
    type: 'module',
    name: '1',
  });
  engine = Comlink.wrap<EngineApi>(worker);
  still = await fetchStill();
});
afterAll(() => worker.terminate());
afterEach(async () => {
  for (const file of await listVideos()) await removeVideo(file);
});

const loraFile = (name: string) =>
  fetchBlob(`/lib/models/wan/goldens/tiny-wan22-ti2v/loras/${name}.safetensors`);

const request = (...changes: [Partial<ParametersInput>?, RunOptions?, Partial<EngineRequest>?]) =>
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

describe('a second model family', () => {
  let other: Comlink.Remote<EngineApi>;
  let own: Worker;
  beforeAll(async () => {
    own = new Worker(new URL('./testing/two-experts-engine.ts', import.meta.url), {
      type: 'module',
    });
    await new Promise((resolve, reject) => {
      own.onmessage = resolve;
      own.onerror = (event) => reject(new Error(event.message));
    });
    other = Comlink.wrap<EngineApi>(own);
  }, 120_000);
  afterAll(async () => {
    own.terminate();
    for (const { id } of await listRuns()) await removeRun(id);
  });
  const { id: model } = twoExpertsManifest;

  test('runs in the same engine, in two clips, with a LoRA, to an MP4, and says how it was made', async () => {
    const events: ProgressEvent[] = [];
    const name = 'expert.safetensors';
    const source = 'owner/name/expert.safetensors';
    const lora = new Blob([twoExpertsLora()]);
    const framing = { zoom: 0, x: 1, y: 0.25, background: '#204060' };
    const end = { zoom: 2, x: 0, y: 1, background: 'blur' };
    const asked = request(
      {
        num_inference_steps: 3,
        guidance_scale: 2,
        size: '720*1280',
        loras: [{ path: name, scale: 1.5 }],
      },
      { framing, lastImage: { name: 'end.png', framing: end } },
      {
        lastImage: still,
        model,
        profile: 'ultra-fast',
        loras: [{ name, file: lora, scale: 1.5, source }],
      },
    );
    const report = Comlink.proxy((event: ProgressEvent) => void events.push(event));
    let image: Float32Array | undefined;
    const given = new BroadcastChannel('given');
    given.onmessage = ({ data }) => {
      image ??= data;
    };
    const result = await other.generate(asked, report);
    given.close();
    expect(result).toMatchObject({
      videoFile: `${asked.id}.mp4`,
      model,
      profile: 'ultra-fast',
      backend: 'wasm',
      encoder: 'webcodecs',
      frames: 81,
      frameRate: 16,
      seed: 42,
      finishedEarly: false,
    });
    const { total, ...parts } = result.timings;
    const sum = Object.values(parts).reduce((a, b) => a + b, 0);
    expect(Math.abs(sum - total)).toBeLessThan(0.2);
    expect(await listVideos()).toEqual([result.videoFile]);
    const file = await readVideo(result.videoFile);
    expect(file.size).toBe(result.videoBytes);
    expect(await inspectVideo(file)).toMatchObject({
      width: 720,
      height: 1280,
      frames: 81,
      frameRate: 16,
    });
    // The file tells nothing; the result has what it tells once it leaves.
    const text = await file.text();
    for (const told of [asked.parameters.prompt, name, 'prompt', 'seed', 'kinora', 'udta']) {
      expect(text.toLowerCase(), told).not.toContain(told);
    }
    expect(result.loraFiles).toEqual([{ sha256: await sha256(await lora.arrayBuffer()), source }]);
    expect(result.licence).toEqual(twoExpertsManifest.licence);
    expect(result.applied).toMatchObject({ steps: 3, guidance_scale: 2, decoder: 'full' });
    const phases = events.flatMap((event) => (event.type === 'phase' ? [event.phase] : []));
    expect([...new Set(phases)]).toEqual(['load', 'text', 'image', 'denoise', 'decode', 'finish']);
    const steps = events.flatMap((event) =>
      event.type === 'step' ? [`${event.clip}:${event.step}`] : [],
    );
    expect(steps).toEqual(['0:1', '0:2', '0:3', '1:1', '1:2', '1:3']);
    expect(events.some((event) => event.type === 'preview')).toBe(true);
    const said = events.flatMap((event) => (event.type === 'estimate' ? [event] : []));
    const shares = said.map(({ share }) => share);
    expect(shares).toEqual(shares.toSorted((a, b) => a - b));
    expect(shares.at(-1)).toBeGreaterThan(0.9);
    // What was measured is remembered for the next run.
    const key = pacesKey(null, { backend: 'wasm' }, model);
    const paces = (await loadSetting(new KinoraDatabase(), key)) as Paces;
    expect(paces.denoise).toBeGreaterThan(0);
    // What was framed is what the model was given.
    const frames = [
      twoExpertsManifest.nativeSizes['720*1280'],
      { width: 720, height: 1280 },
    ] as const;
    const framed = frameImage(await decodeImage(still), framing, ...frames);
    expect(image).toEqual(framed);
    expect((await other.counters()).liveBytes).toBe(0);
  });
});

describe('bad input ends with its code and leaves nothing', () => {
  // Each way in which an image or a LoRA is bad is tested beside the code that reads it.
  test('an image that is cut', async () => {
    const image = still.slice(0, still.size / 2);
    expect((await refused(request({}, {}, { image }))).code).toBe('IMAGE_TRUNCATED');
    const last = await refused(request({}, {}, { lastImage: image }));
    expect(last).toMatchObject({ code: 'IMAGE_TRUNCATED' });
    expect(last.message).toBe('The end image cannot be used: The image file ends too early.');
  });

  test('a LoRA of another base', async () => {
    const file = await loraFile('wrong_base_14b');
    const loras = [{ name: 'wrong_base_14b.safetensors', file, scale: 1 }];
    const error = await refused(request({}, {}, { loras }));
    expect(error.code).toBe('LORA_WRONG_BASE');
    expect(error.message).toContain('[5120,5120]');
  });

  test('a model that is unknown, or not installed', async () => {
    const error = await refused(request({}, {}, { model: 'wan9' }));
    expect(error).toMatchObject({ code: 'MODEL_UNKNOWN', message: 'There is no model "wan9".' });
    const absent = await refused(request({}, {}, { model: 'wan2.2-ti2v-5b' }));
    expect(absent.code).toBe('MODEL_NOT_INSTALLED');
  });
});

describe('while it runs', () => {
  test('a second one is refused with BUSY, and so is unloading', async () => {
    const first = failureOf(generate(request()));
    expect((await failureOf(generate(request()))).code).toBe('BUSY');
    expect((await failureOf(engine.unload())).code).toBe('BUSY');
    await engine.cancel();
    expect((await first).code).toBe('CANCELLED');
    await engine.load('tiny', 'wasm');
    await engine.unload();
    expect((await engine.counters()).liveBytes).toBe(0);
  });

  test.each(['load', 'decode'] as const)('cancelling in %s', async (phase) => {
    const running = generate(request(), [], (event) => {
      if (event.type === 'phase' && event.phase === phase) void engine.cancel();
    });
    expect((await failureOf(running)).code).toBe('CANCELLED');
    expect(await listVideos()).toEqual([]);
    expect((await engine.counters()).liveBytes).toBe(0);
  });
});

/** Runs `body` with an engine of its own, in a worker where `prelude` ran first. */
async function withEngine(
  prelude: string,
  body: (engine: Comlink.Remote<EngineApi>) => Promise<void>,
): Promise<void> {
  // The query makes the test server serve it as a worker's module.
  const url = new URL('/lib/engine/testing/short-engine.ts?worker_file&type=module', location.href)
    .href;
  const script = `${prelude}; await import(${JSON.stringify(url)}); postMessage('ready');`;
  const address = URL.createObjectURL(new Blob([script], { type: 'text/javascript' }));
  const other = new Worker(address, { type: 'module', name: '1' });
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

test(
  'an encoder that fails during a run is ENCODER_FAILED and leaves nothing',
  { tags: ['full'] },
  () =>
    withEngine(
      `self.VideoEncoder = class extends VideoEncoder {
        given = 0;
        encode(...frame) {
          this.given += 1;
          if (this.given === 3) this.close();
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
        expect(frames).toBeLessThan(5);
        expect(await listVideos()).toEqual([]);
        expect((await engine.counters()).liveBytes).toBe(0);
      },
    ),
);

test('of an emulated GPU no time is told before two steps were measured', {
  tags: ['full'],
}, async () => {
  const gpu = await probeDevice();
  expect(gpu.software).toBe(true);
  const device = { backend: 'webgpu' } as const;
  await saveSetting(new KinoraDatabase(), pacesKey(gpu, device, 'tiny'), {});
  const events: ProgressEvent[] = [];
  const asked = request({ num_inference_steps: 3 }, { decoder: 'tiny' }, { device });
  await generate(asked, events);
  const types = events.map(({ type }) => type);
  // An estimate comes just before the event that changes it.
  expect(types.indexOf('estimate')).toBeGreaterThan(types.indexOf('step'));

  // The next run knows it from its beginning.
  const later: ProgressEvent[] = [];
  await generate(request({}, { decoder: 'tiny' }, { device }), later);
  const again = later.map(({ type }) => type);
  expect(again.indexOf('estimate')).toBeLessThan(again.indexOf('step'));

  const { loadSeconds } = await engine.counters();
  const total = Object.values(loadSeconds).reduce((sum, seconds) => sum + seconds, 0);
  for (const component of ['text_encoder', 'vae', 'transformer', 'tiny_decoder']) {
    expect(loadSeconds[component], component).toBeGreaterThan(0);
    expect(loadSeconds[component], component).toBeLessThan(total);
  }
});

test('a GPU with wrong numbers is refused', { tags: ['full'] }, () =>
  withEngine(
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
      const error = await failureOf(engine.load('tiny', 'webgpu'));
      expect(error.code).toBe('GPU_UNRELIABLE');
      expect(error.message).toContain('attention');
      expect((await engine.counters()).liveBytes).toBe(0);
    },
  ),
);

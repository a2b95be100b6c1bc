/** @module-tag full */
import * as Comlink from 'comlink';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { centred, type EngineApi, installTransferHandlers, type ProgressEvent } from '../contract';
import { failureOf } from '../contract/testing/failure';
import { readVideo, removeVideo } from '../predictions/videos';
import { coverCrop, decodeImage, FrameScaler, inspectVideo } from '../video';
import { readFrame } from '../video/frames';
import { lanczos3 } from '../video/resample';
import { createRgbaWriter } from '../video/testing/i420';
import { fetchBlob, fetchStill, generate, makeRequest } from './testing/runs';

installTransferHandlers();

let worker: Worker;
let engine: Comlink.Remote<EngineApi>;
beforeAll(() => {
  // Its name is the number of frames per second.
  worker = new Worker(new URL('./testing/finishing-engine.ts', import.meta.url), {
    type: 'module',
    name: '1',
  });
  engine = Comlink.wrap<EngineApi>(worker);
});
afterAll(() => worker.terminate());

interface PixelSize {
  readonly width: number;
  readonly height: number;
}
const size: PixelSize = { width: 1280, height: 720 };

/** The sample image, moved by two pixels a frame. */
async function makeVideo(frames: number, size: PixelSize): Promise<Blob> {
  const picture = await decodeImage(await fetchBlob('/samples/still.jpg'), centred.background);
  const wide = coverCrop(picture, size.width + 2 * frames, size.height);
  const writer = await createRgbaWriter({ ...size, frames, frameRate: 24 });
  const scaler = new FrameScaler(size, size);
  for (let index = 0; index < frames; index++) {
    const frame = new Float32Array(3 * size.width * size.height);
    for (let row = 0; row < 3 * size.height; row++) {
      const from = row * (size.width + 2 * frames) + 2 * index;
      frame.set(wide.subarray(from, from + size.width), row * size.width);
    }
    await writer.add(scaler.scale(frame));
  }
  return writer.finish();
}

/** Peak signal to noise of RGB, in dB. */
function psnr(a: Uint8ClampedArray, b: Uint8ClampedArray): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) {
    if (i % 4 !== 3) sum += ((a[i] ?? 0) - (b[i] ?? 0)) ** 2;
  }
  return 10 * Math.log10(255 ** 2 / (sum / (0.75 * a.length)));
}

const common = { loop: false, backend: 'wasm' } as const;

test('a finished video is enlarged: size, level, every frame', async () => {
  const file = await makeVideo(3, size);
  const events: ProgressEvent[] = [];
  const video = await engine.enhance(
    { ...common, file, finishing: { upscale: 2 } },
    Comlink.proxy((event: ProgressEvent) => void events.push(event)),
  );
  expect(await inspectVideo(video)).toMatchObject({
    width: 2560,
    height: 1440,
    frames: 3,
    frameRate: 24,
    // Level 5.
    codec: expect.stringMatching(/^avc1\.64..32$/),
  });
  expect(events).toContainEqual({ type: 'frame', frame: 3, frames: 3 });
  const source = await readFrame(file, 2);
  const scaler = new FrameScaler(size, { width: 2560, height: 1440 }, lanczos3);
  const wanted = scaler.scale(coverCrop(source, size.width, size.height));
  expect(psnr((await readFrame(video, 2)).data, wanted)).toBeGreaterThan(38);
});

test('the decoders of a model are compared by the last clip of an MP4', async () => {
  const video = await makeVideo(11, size);
  const [full, tiny] = await engine.compareDecoders(video, 'tiny', 'wasm');
  expect(full).toMatchObject({ decoder: 'full', psnr: null, seconds: expect.any(Number) });
  expect(tiny).toMatchObject({ decoder: 'tiny', seconds: expect.any(Number) });
  expect(tiny?.psnr).toBeGreaterThan(0);
  expect(tiny?.psnr).toBeLessThan(40);
  const failure = await failureOf(engine.compareDecoders(new Blob(['no video']), 'tiny', 'wasm'));
  expect(failure.code).toBe('VIDEO_UNREADABLE');
});

test('a finished loop is made smoother: the frames that it has stay, and one lies between each two', {
  tags: ['full'],
}, async () => {
  const [frames, small] = [4, { width: 128, height: 64 }] as const;
  const file = await makeVideo(frames, small);
  const asked = { ...common, loop: true, file, finishing: { smooth: true } };
  const video = await engine.enhance(
    asked,
    Comlink.proxy(() => undefined),
  );
  expect(await inspectVideo(video)).toMatchObject({ ...small, frames: 8, frameRate: 48 });
  for (let frame = 0; frame < frames; frame++) {
    const [before, after] = [await readFrame(file, frame), await readFrame(video, 2 * frame)];
    expect(psnr(after.data, before.data)).toBeGreaterThan(34);
  }
});

test('a finished video is enlarged by a network', {
  tags: ['full'],
}, async () => {
  const file = await makeVideo(2, { width: 128, height: 64 });
  const finishing = { upscale: 2, upscaler: 'realesr-general-x4v3' } as const;
  const nothing = Comlink.proxy(() => undefined);
  const video = await engine.enhance({ ...common, file, finishing }, nothing);
  expect(await inspectVideo(video)).toMatchObject({ width: 256, height: 128, frames: 2 });
});

test('a file that is no video is refused', async () => {
  const file = new Blob(['no video']);
  const asked = { ...common, file, finishing: { upscale: 2 } } as const;
  const nothing = Comlink.proxy(() => undefined);
  expect((await failureOf(engine.enhance(asked, nothing))).code).toBe('VIDEO_UNREADABLE');
});

test('a run makes an enlarged video from its own frames', { tags: ['full'] }, async () => {
  const asked = makeRequest(await fetchStill(), { upscale: 2, size: '720*1280' });
  const result = await generate(engine, asked);
  const made = { width: 1440, height: 2560, frames: 5 };
  expect(result).toMatchObject({ ...made, size: '720*1280' });
  const video = await readVideo(result.videoFile);
  expect(await inspectVideo(video)).toMatchObject(made);
  await removeVideo(result.videoFile);
});

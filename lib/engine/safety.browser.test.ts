/** @module-tag full */
import * as Comlink from 'comlink';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  type Backend,
  centred,
  type EngineApi,
  type Framing,
  installTransferHandlers,
  type ProgressEvent,
  quickChecker,
  type RunOptions,
} from '../contract';
import { failureOf } from '../contract/testing/failure';
import { listVideos, readVideo, removeVideo, servedVideo } from '../predictions/videos';
import { decodeImage, frameImage } from '../video';
import { readFrame } from '../video/frames';
import { installChecker, removeChecker } from './testing/checker';
import { fetchStill, generate, makeRequest } from './testing/runs';

installTransferHandlers();

let worker: Worker;
let engine: Comlink.Remote<EngineApi>;
let still: Blob;
/** File of a video that no checker has seen, for tests of later checks. */
let unchecked: string;

beforeAll(async () => {
  // Its name is the number of frames per second: of 21 frames 4 are checked.
  worker = new Worker(new URL('./testing/short-engine.ts', import.meta.url), {
    type: 'module',
    name: '4',
  });
  engine = Comlink.wrap<EngineApi>(worker);
  still = await fetchStill();
  const video = await generate(engine, asked('a boat', { safetyChecker: false }));
  unchecked = video.videoFile;
}, 120_000);
afterAll(async () => {
  worker.terminate();
  await removeVideo(unchecked);
});
afterEach(async () => {
  await removeChecker();
  for (const file of await listVideos()) if (file !== unchecked) await removeVideo(file);
  expect((await engine.counters()).liveBytes).toBe(0);
});

const asked = (prompt = 'a boat', options: RunOptions = {}) =>
  makeRequest(still, { prompt }, { safetyChecker: true, ...options });

const check = (videoFile: string, backend: Backend = 'wasm', prompt = 'a boat') =>
  engine.check({ videoFile, model: 'tiny', prompts: [prompt, ''], backend });

const byQuick = {
  model: quickChecker.model,
  sha256: quickChecker.weights.sha256,
  threshold: quickChecker.threshold,
};

const phasesOf = (events: readonly ProgressEvent[]) => [
  ...new Set(events.flatMap((event) => (event.type === 'phase' ? [event.phase] : []))),
];

test('a video of the API comes with its framed image, and with the frame in its middle unless it is flagged', async () => {
  const framing = { zoom: 2, x: 0, y: 1, background: 'blur' };
  const options = { safetyChecker: false, framing };
  const request = { ...asked('a boat', options), videoFile: servedVideo('a') };
  const video = await generate(engine, request);
  const { poster, image } = video.pictures ?? {};
  if (!poster || !image) throw new Error('It has no picture.');
  const framed = await decodeImage(image);
  expect([framed.width, framed.height]).toEqual([video.width, video.height]);
  const whole = await decodeImage(still);
  const offTo = (placed: Framing) => {
    const planar = frameImage(whole, placed, framed);
    const off = planar.reduce((sum, value, i) => {
      const at = 4 * (i % (planar.length / 3)) + Math.floor((3 * i) / planar.length);
      return sum + Math.abs((value + 1) * 127.5 - (framed.data[at] ?? 0));
    }, 0);
    return off / planar.length;
  };
  expect(offTo(framing)).toBeLessThan(3);
  expect(offTo(centred)).toBeGreaterThan(10);
  expect(poster.type).toBe('image/jpeg');
  const { width, height, data } = await decodeImage(poster);
  expect([width, height]).toEqual([video.width, video.height]);
  const differenceTo = async (index: number) => {
    const frame = await readFrame(await readVideo(video.videoFile), index);
    return data.reduce((sum, v, i) => sum + Math.abs(v - (frame.data[i] ?? 0)), 0) / data.length;
  };
  const middle = await differenceTo(video.frames >> 1);
  // H.264 and JPEG both change pixels a little.
  expect(middle).toBeLessThan(8);
  for (const index of [0, video.frames - 1]) {
    expect(await differenceTo(index)).toBeGreaterThan(2 * middle);
  }

  await installChecker(20);
  const flagged = await generate(engine, { ...asked(), videoFile: servedVideo('b') });
  expect(flagged.safety?.status).toBe('flagged');
  expect(Object.keys(flagged.pictures ?? {})).toEqual(['image']);
  await removeChecker();
  expect((await generate(engine, asked())).pictures).toBeUndefined();
});

test('image, then frames are scored; what was found is in the result, and a later check agrees', {
  tags: ['full'],
}, async () => {
  await installChecker(20);
  const events: ProgressEvent[] = [];
  const { safety, videoFile, timings } = await generate(engine, asked(), events);
  expect(safety).toMatchObject({
    status: 'flagged',
    reason: null,
    threshold: 0.5,
    model: 'test/checker',
    sha256: 'c'.repeat(64),
  });
  expect(safety?.frames).toHaveLength(4);
  expect(safety?.input).toBeGreaterThan(0.5);
  expect(safety?.score).toBeGreaterThan(0.5);
  // The image's score comes before the first phase of the model.
  const types = events.map((event) => (event.type === 'phase' ? event.phase : event.type));
  expect(types.indexOf('input-check')).toBeLessThan(types.indexOf('text'));
  expect(phasesOf(events)).toEqual([
    ...['load', 'text', 'image', 'denoise', 'decode', 'check', 'finish'],
  ]);
  expect(timings.check).toBeGreaterThan(0);
  expect(events.findLast((event) => event.type === 'check')).toMatchObject({ done: 8, total: 8 });

  // The encoder changes pixels a little; the verdict stays.
  await installChecker(0);
  const { score: before } = await check(videoFile);
  await installChecker(20);
  const later = await check(videoFile);
  expect(later).toMatchObject({ status: 'flagged', input: null, sha256: 'c'.repeat(64) });
  expect(later.frames).toHaveLength(4);
  expect(before).not.toBe(later.score);

  await installChecker(Number.NaN);
  expect(await check(videoFile)).toMatchObject({
    status: 'unverified',
    reason: 'failed',
    score: null,
  });
  // The quick checker judges where the downloaded one is gone.
  await removeChecker();
  const quick = await check(videoFile);
  expect(quick).toMatchObject({ ...byQuick, status: 'clear', reason: null });
  expect(quick.frames).toHaveLength(4);
});

describe('a prompt that names a child', () => {
  test('is refused with an image that is flagged', async () => {
    const events: ProgressEvent[] = [];
    await installChecker(20);
    const flagged = await failureOf(generate(engine, asked('a child on a swing'), events));
    expect(flagged).toMatchObject({ code: 'PROMPT_REFUSED' });
    expect(flagged.message).toContain('the image');
    expect(phasesOf(events)).toEqual(['load']);
    expect(await listVideos()).toEqual([unchecked]);
  });

  test('delivers no video that is flagged, at once or later', { tags: ['full'] }, async () => {
    const prompt = 'a child on a swing';
    await installChecker(-20);
    const { safety, videoFile } = await generate(engine, asked(prompt));
    // A bias with which the image is clear and the video is not.
    const logit = (p: number | null | undefined) => Math.log((p ?? 0) / (1 - (p ?? 0)));
    expect(logit(safety?.score)).toBeGreaterThan(logit(safety?.input) + 0.2);
    await installChecker(-20 - (logit(safety?.score) + logit(safety?.input)) / 2);
    const now = await failureOf(generate(engine, asked(prompt)));
    expect(now).toMatchObject({ code: 'PROMPT_REFUSED' });
    expect(now.message).toContain('the video');
    expect(new Set(await listVideos())).toEqual(new Set([unchecked, videoFile]));
    await installChecker(20);
    const later = await failureOf(check(videoFile, 'wasm', prompt));
    expect(later).toMatchObject({ code: 'PROMPT_REFUSED' });
    expect(await listVideos()).toEqual([unchecked]);
  });
});

describe('cancelling', () => {
  test('after the check of the image', async () => {
    await installChecker(20);
    const running = generate(engine, asked(), [], ({ type }) => {
      if (type === 'input-check') void engine.cancel();
    });
    expect((await failureOf(running)).code).toBe('CANCELLED');
    expect(await listVideos()).toEqual([unchecked]);
  });
  test('in a later check', { tags: ['full'] }, async () => {
    await installChecker(20);
    const checking = failureOf(check(unchecked));
    await engine.cancel();
    expect((await checking).code).toBe('CANCELLED');
    expect(await listVideos()).toEqual([unchecked]);
  });
});

test('a check of a run on an emulated GPU is computed on the CPU', { tags: ['full'] }, async () => {
  await installChecker(0);
  const checked = await check(unchecked, 'webgpu');
  expect(checked).toEqual(await check(unchecked));
});

/** @module-tag full */
import type { FFmpeg as FFmpegClass } from '@ffmpeg/ffmpeg';
import { afterEach, beforeAll, expect, test } from 'vitest';
import { failureOf } from '../contract/testing/failure';
import {
  cutVideo,
  encodingReason,
  joinedFrames,
  piecesOf,
  readCutPoints,
  type VideoPiece,
} from './cut';
import { coverCrop } from './frame-image';
import { FrameScaler } from './frame-scaler';
import { continuationImage, readFrame, readFrames } from './frames';
import { decodeImage, type Pixels } from './image';
import { inspectVideo } from './inspect';
import { createRgbaWriter } from './testing/i420';
import { packetsOf } from './testing/packets';

const frameRate = 24;
const [width, height] = [160, 96];
/** A key frame comes every 2 seconds. */
const keyInterval = 48;

/** Grey that tells which frame of the joined video it is. */
const levelOf = (frame: number) => 40 + ((frame * 37) % 180);

/** A video of which each frame has a level of its own, counted from `first`. */
async function make(first: number, frames: number, size = width): Promise<Blob> {
  const writer = await createRgbaWriter({
    width: size,
    height,
    frameRate,
    frames,
    encoder: 'webcodecs',
  });
  const frame = new Uint8ClampedArray(size * height * 4).fill(90);
  for (let i = 0; i < frames; i++) {
    // Only the middle changes: for a new scene, the encoder adds key frames.
    for (let y = height / 2 - 8; y < height / 2 + 8; y++) {
      const middle = (y * size + width / 2) * 4;
      frame.fill(levelOf(first + i), middle - 32, middle + 32);
    }
    await writer.add(frame);
  }
  return writer.finish();
}

/** Which frame of the joined video each frame is, by its grey. */
async function levelsOf(video: Blob): Promise<number[]> {
  const { frames } = await inspectVideo(video);
  const levels: number[] = [];
  const indices = Array.from({ length: frames }, (_, index) => index);
  for await (const { pixels } of readFrames(video, indices, frameRate)) {
    levels.push(pixels.data[(width * (height / 2) + width / 2) * 4] as number);
  }
  return levels;
}

async function expectFrames(video: Blob, from: number, to: number): Promise<void> {
  expect(await inspectVideo(video)).toMatchObject({
    width,
    height,
    frames: to - from,
    frameRate,
    fastStart: true,
    durationSeconds: Math.round(((to - from) / frameRate) * 1e4) / 1e4,
  });
  const levels = await levelsOf(video);
  const off = levels.map((level, i) => Math.abs(level - levelOf(from + i)));
  expect(Math.max(...off), levels.join()).toBeLessThanOrEqual(3);
}

let first: Blob;
let second: Blob;
let parts: { file: Blob; frames: number }[];
beforeAll(async () => {
  // The second one starts from the last frame of the first one.
  [first, second] = [await make(0, 61), await make(60, 61)];
  parts = [
    { file: first, frames: 61 },
    { file: second, frames: 61 },
  ];
});

function cut(from: number, to: number): readonly VideoPiece[] {
  return piecesOf(parts, from, to).map(({ part, ...range }) => ({ file: part.file, ...range }));
}

test('a video and its continuation are joined without encoding them again', async () => {
  const total = joinedFrames(parts);
  const frames: number[] = [];
  const { video, copied } = await cutVideo(cut(0, total), {
    onFrame: (frame) => frames.push(frame),
  });
  expect(copied).toBe(true);
  expect(frames.at(-1)).toBe(121);
  expect(await packetsOf(video)).toEqual([
    ...(await packetsOf(first)).slice(0, 60),
    ...(await packetsOf(second)),
  ]);
  await expectFrames(video, 0, 121);
});

test('a cut at a key frame copies; one between key frames is exact all the same', async () => {
  const atKey = await cutVideo(cut(keyInterval, 58), {});
  expect(atKey.copied).toBe(true);
  await expectFrames(atKey.video, keyInterval, 58);
  const between = await cutVideo(cut(17, 97), {});
  expect(between.copied).toBe(false);
  await expectFrames(between.video, 17, 97);
});

/** Why the frames of {@link cut} are encoded again, as the dialog says it beforehand. */
async function reasonFor(pieces: readonly VideoPiece[]) {
  const pointed = pieces.map(async ({ file, from }) => ({
    points: await readCutPoints(file),
    from,
  }));
  return encodingReason(await Promise.all(pointed));
}

test('what a cut will do is known before it', async () => {
  const wide = { file: await make(0, 5, 192), from: 0, to: 5 };
  const reordered = { file: await withBFrames(10), from: 0, to: 10 };
  expect(await reasonFor(cut(0, 121))).toBe(null);
  expect(await reasonFor(cut(keyInterval, 58))).toBe(null);
  expect(await reasonFor(cut(17, 97))).toBe('start');
  expect(await reasonFor([...cut(0, 5), wide])).toBe('configuration');
  expect(await reasonFor([reordered])).toBe('order');
  // Even a cut at the end, which copies what other encoders have made.
  const { copied, video } = await cutVideo([{ ...reordered, to: 7 }], {});
  expect(copied).toBe(false);
  expect((await inspectVideo(video)).frames).toBe(7);
});

/** A video whose frames are stored in another order than they are shown, as Firefox encodes them. */
async function withBFrames(frames: number): Promise<Blob> {
  const url = (name: string) => new URL(`/ffmpeg/${name}`, location.origin).href;
  const { FFmpeg } = await import(/* @vite-ignore */ url('index.js'));
  const ffmpeg: FFmpegClass = new FFmpeg();
  try {
    await ffmpeg.load({ coreURL: url('ffmpeg-core.js'), wasmURL: url('ffmpeg-core.wasm') });
    const source = `testsrc=size=${width}x${height}:rate=${frameRate}`;
    const options = [
      '-frames:v',
      String(frames),
      '-c:v',
      'libx264',
      '-bf',
      '2',
      '-b_strategy',
      '0',
    ];
    await ffmpeg.exec(['-f', 'lavfi', '-i', source, ...options, '-pix_fmt', 'yuv420p', 'out.mp4']);
    const file = (await ffmpeg.readFile('out.mp4')) as Uint8Array<ArrayBuffer>;
    return new Blob([file], { type: 'video/mp4' });
  } finally {
    ffmpeg.terminate();
  }
}

test('videos of different sizes are refused, and an abort ends it', async () => {
  const wide = { file: await make(0, 2, 192), from: 0, to: 2 };
  const refused = await failureOf(cutVideo([...cut(0, 5), wide], {}));
  expect(refused).toMatchObject({ code: 'VIDEO_UNREADABLE', message: /differ in size/ });
  const abort = new AbortController();
  const ended = cutVideo(cut(17, 97), {
    signal: abort.signal,
    onFrame: (frame) => frame === 5 && abort.abort(),
  });
  expect((await failureOf(ended)).code).toBe('CANCELLED');
});

const { VideoEncoder } = globalThis;
afterEach(() => {
  globalThis.VideoEncoder = VideoEncoder;
});

test('without an encoder, cuts at key frames still work, and others say what to do', async () => {
  const odd = { file: await make(0, 61, 176), from: 0, to: 50 };
  Reflect.deleteProperty(globalThis, 'VideoEncoder');
  expect((await cutVideo([odd], {})).copied).toBe(true);
  const failure = await failureOf(cutVideo([{ ...odd, from: 3 }], {}));
  expect(failure).toMatchObject({ code: 'ENCODER_FAILED', remedy: /whole 2 seconds/ });
});

/** A picture in which every shift or change of size shows, with saturated colours. */
function pattern(): Pixels {
  const [wide, high] = [640, 360];
  const data = new Uint8ClampedArray(wide * high * 4).fill(255);
  for (let y = 0; y < high; y++) {
    for (let x = 0; x < wide; x++) {
      const wave = 60 * Math.sin(x / 9) + 60 * Math.cos(y / 7);
      data.set([120 + wave, 90 - wave / 3, x < wide / 2 ? 220 : 60], (y * wide + x) * 4);
    }
  }
  return { width: wide, height: high, data };
}

test('a continuation starts as the last frame was: not enlarged, not shifted, in the same colours', async () => {
  const picture = pattern();
  const size = { width: picture.width, height: picture.height };
  const writer = await createRgbaWriter({
    ...size,
    frameRate,
    frames: 1,
    encoder: 'webcodecs',
  });
  await writer.add(picture.data);
  const video = await writer.finish();
  const last = await readFrame(video);
  const mean = (a: Uint8ClampedArray, b: Uint8ClampedArray) =>
    a.reduce((sum, value, i) => sum + Math.abs(value - (b[i] as number)), 0) / a.length;
  // The encoder is good, and nothing else changes a colour.
  expect(mean(last.data, picture.data)).toBeLessThan(2);

  // 40:22 like 1280×704: wider than the video, whose margins the model's frames lose.
  const native = { width: 640, height: 352 };
  const image = await decodeImage(await continuationImage(video, native));
  const input = coverCrop(image, native.width, native.height);
  const output = new FrameScaler(native, size).scale(input);
  const plain = new FrameScaler(native, size).scale(coverCrop(last, native.width, native.height));
  expect(mean(output, last.data)).toBeLessThan(1.5);
  // So much it would be off if the model were given the frame itself.
  expect(mean(plain, last.data)).toBeGreaterThan(6);
});

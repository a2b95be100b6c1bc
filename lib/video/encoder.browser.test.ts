import type { FFmpeg as FFmpegClass } from '@ffmpeg/ffmpeg';
import {
  BlobSource,
  EncodedPacketSink,
  Input,
  MP4,
  type VideoSample,
  VideoSampleSink,
} from 'mediabunny';
import { afterEach, describe, expect, test } from 'vitest';
import { failureOf } from '../contract/testing/failure';
import { toBytes } from './bytes';
import type { VideoWriterOptions } from './encoder';
import { inspectVideo } from './inspect';
import { createRgbaWriter } from './testing/i420';
import type { WorkerAnswer, WorkerTask } from './testing/worker';

function optionsFor(
  width: number,
  height: number,
  frames: number,
  encoder: 'auto' | 'webcodecs' | 'ffmpeg',
): VideoWriterOptions {
  return { width, height, frames, frameRate: 24, encoder };
}

const patches = [
  [200, 40, 40],
  [40, 180, 60],
  [50, 60, 210],
  [235, 220, 190],
] as const;

/** Grey of the middle band: tells which frame it is. */
function levelOf(index: number): number {
  return 20 + ((index * 37) % 216);
}

/** Four colours in the quarters and, across the middle, a band whose grey differs per frame. */
function paint(frame: Uint8ClampedArray, width: number, height: number, index: number): void {
  for (let y = 0; y < height; y++) {
    const inBand = Math.abs(y - height / 2) < height / 8;
    for (let x = 0; x < width; x++) {
      const quarter = (x < width / 2 ? 0 : 1) + (y < height / 2 ? 0 : 2);
      const level = levelOf(index);
      const color = inBand ? [level, level, level] : patches[quarter];
      frame.set(color as readonly number[], (y * width + x) * 4);
    }
  }
}

/** Mean Y, U and V of a square of 6×6 pixels in a decoded frame. */
async function meanYuv(sample: VideoSample, x: number, y: number): Promise<number[]> {
  const data = new Uint8Array(sample.allocationSize());
  const planes = await sample.copyTo(data);
  const mean = (plane: PlaneLayout | undefined, step: number, from: number, divisor: number) => {
    if (!plane) throw new Error(`a frame of format ${sample.format}`);
    let sum = 0;
    for (let row = 0; row < 6 / divisor; row++) {
      for (let column = 0; column < 6 / divisor; column++) {
        const line = Math.floor((y - 3) / divisor) + row;
        const place = Math.floor((x - 3) / divisor) + column;
        sum += data[plane.offset + from + line * plane.stride + place * step] as number;
      }
    }
    return (sum * divisor * divisor) / 36;
  };
  const [luma, first, second] = planes;
  const brightness = mean(luma, 1, 0, 1);
  if (sample.format === 'NV12') return [brightness, mean(first, 2, 0, 2), mean(first, 2, 1, 2)];
  return [brightness, mean(first, 1, 0, 2), mean(second, 1, 0, 2)];
}

/** BT.709, limited range, by its definition. */
function yuvOf([r, g, b]: readonly [number, number, number]): number[] {
  const luma = (0.2126 * r + 0.7152 * g + 0.0722 * b) / 255;
  const u = (b / 255 - luma) / 1.8556;
  const v = (r / 255 - luma) / 1.5748;
  return [16 + 219 * luma, 128 + 224 * u, 128 + 224 * v];
}

/**
 * Decodes every frame and compares its colours with what was painted: as decoded and not as drawn.
 * Drawn on a canvas in Chromium, blue was off by up to 9 where these planes were right.
 */
async function expectPainted(video: Blob, frames: number): Promise<void> {
  const input = new Input({ source: new BlobSource(video), formats: [MP4] });
  const track = await input.getPrimaryVideoTrack();
  if (!track) throw new Error('no video track');
  expect(await track.getColorSpace()).toMatchObject({
    primaries: 'bt709',
    transfer: 'bt709',
    matrix: 'bt709',
    fullRange: false,
  });
  let index = 0;
  for await (const sample of new VideoSampleSink(track).samples()) {
    const { displayWidth: width, displayHeight: height } = sample;
    expect(sample.timestamp).toBeCloseTo(index / 24, 4);
    for (const [i, color] of patches.entries()) {
      const x = i % 2 === 0 ? width / 4 : (width * 3) / 4;
      const y = i < 2 ? height / 6 : (height * 5) / 6;
      const actual = await meanYuv(sample, Math.round(x), Math.round(y));
      expectNear(actual, yuvOf(color), `frame ${index}, quarter ${i}`);
    }
    const level = levelOf(index);
    const actual = await meanYuv(sample, width / 2 + 16, height / 2);
    expectNear(actual, yuvOf([level, level, level]), `frame ${index}`);
    sample.close();
    index += 1;
  }
  expect(index).toBe(frames);
  input.dispose();
}

function expectNear(actual: readonly number[], wanted: readonly number[], where: string): void {
  for (let c = 0; c < 3; c++) {
    const off = Math.abs((actual[c] ?? Number.NaN) - (wanted[c] ?? Number.NaN));
    expect(off, `${where}: ${actual} is not ${wanted}`).toBeLessThanOrEqual(2);
  }
}

describe.each(['webcodecs', 'ffmpeg'] as const)('%s', { tags: ['full'] }, (encoder) => {
  test.each([
    [160, 96, 50],
    [96, 160, 1],
    [1280, 720, 3],
  ])('%i×%i, %i frames: what goes in comes out', async (width, height, frames) => {
    const writer = await createRgbaWriter(optionsFor(width, height, frames, encoder));
    expect(writer.encoder).toBe(encoder);
    const frame = new Uint8ClampedArray(width * height * 4); // one buffer for all frames
    for (let i = 0; i < frames; i++) {
      paint(frame, width, height, i);
      await writer.add(frame);
    }
    const video = await writer.finish();
    expect(video.type).toBe('video/mp4');
    const facts = await inspectVideo(video);
    expect(facts).toMatchObject({ width, height, frames, frameRate: 24, fastStart: true });
    expect(facts.codec).toMatch(/^avc1\./);
    expect(facts.durationSeconds).toBeCloseTo(frames / 24, 3);
    await expectPainted(video, frames);
  });

  test('too few and too many frames are refused', async () => {
    const frame = new Uint8ClampedArray(32 * 32 * 4);
    const few = await createRgbaWriter(optionsFor(32, 32, 2, encoder));
    await few.add(frame);
    const missing = await failureOf(few.finish());
    expect(missing.code).toBe('ENCODER_FAILED');
    expect(missing.message).toContain('1 of 2 frames');
    const many = await createRgbaWriter(optionsFor(32, 32, 1, encoder));
    await many.add(frame);
    expect((await failureOf(many.add(frame))).code).toBe('ENCODER_FAILED');
  });

  test('cancelled at any time it ends with CANCELLED and takes nothing more', async () => {
    const frame = new Uint8ClampedArray(320 * 192 * 4);
    for (const before of [0, 1, 30]) {
      const writer = await createRgbaWriter(optionsFor(320, 192, 60, encoder));
      for (let i = 0; i < before; i++) await writer.add(frame);
      await writer.cancel();
      await writer.cancel();
      expect((await failureOf(writer.add(frame))).code).toBe('CANCELLED');
      expect((await failureOf(writer.finish())).code).toBe('CANCELLED');
    }
  });

  test('cancelled while it finishes, finishing ends with CANCELLED', async () => {
    const frame = new Uint8ClampedArray(640 * 360 * 4);
    const writer = await createRgbaWriter(optionsFor(640, 360, 20, encoder));
    for (let i = 0; i < 20; i++) await writer.add(frame);
    const finishing = failureOf(writer.finish());
    await writer.cancel();
    expect((await finishing).code).toBe('CANCELLED');
  });

  test('a frame of another size is a TypeError and harms nothing', async () => {
    const writer = await createRgbaWriter(optionsFor(32, 32, 1, encoder));
    await expect(writer.add(new Uint8ClampedArray(5))).rejects.toThrow(TypeError);
    await writer.add(new Uint8ClampedArray(32 * 32 * 4));
    expect((await inspectVideo(await writer.finish())).frames).toBe(1);
  });

  test('in a Web Worker, from the image to the file', async () => {
    const canvas = new OffscreenCanvas(300, 200);
    const context = canvas.getContext('2d');
    if (!context) throw new Error('no canvas');
    context.fillStyle = 'rgb(40 180 60)';
    context.fillRect(0, 0, 300, 200);
    const image = await canvas.convertToBlob({ type: 'image/png' });
    const task: WorkerTask = {
      image,
      source: { width: 160, height: 96 },
      options: optionsFor(320, 180, 5, encoder),
    };
    const worker = new Worker(new URL('./testing/worker.ts', import.meta.url), { type: 'module' });
    const answer = await new Promise<WorkerAnswer>((resolve, reject) => {
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = (event) => reject(new Error(event.message));
      worker.postMessage(task);
    }).finally(() => worker.terminate());
    if ('error' in answer) throw new Error(answer.error);
    expect(answer.encoder).toBe(encoder);
    expect(await inspectVideo(answer.video)).toMatchObject({ width: 320, height: 180, frames: 5 });
  });
});

/** What ffmpeg has to say against a video. */
async function warningsOf(video: Blob): Promise<string[]> {
  const url = (name: string) => new URL(`/ffmpeg/${name}`, location.origin).href;
  const { FFmpeg } = await import(/* @vite-ignore */ url('index.js'));
  const ffmpeg: FFmpegClass = new FFmpeg();
  const said: string[] = [];
  try {
    await ffmpeg.load({ coreURL: url('ffmpeg-core.js'), wasmURL: url('ffmpeg-core.wasm') });
    await ffmpeg.writeFile('in.mp4', new Uint8Array(await video.arrayBuffer()));
    ffmpeg.on('log', ({ message }) => said.push(message));
    await ffmpeg.exec(['-v', 'warning', '-i', 'in.mp4', '-f', 'null', '-']);
  } finally {
    ffmpeg.terminate();
  }
  // The wrapper's own words.
  return said.filter((line) => !line.startsWith('Aborted()'));
}

/** Doubles the first byte of each parameter set, and clears the reserved bits, as Firefox does. */
function asInFirefox(record: Uint8Array): Uint8Array {
  const [sps, pps] = [record.subarray(8, 8 + (record[7] ?? 0)), 8 + (record[7] ?? 0)];
  const picture = record.subarray(pps + 3, pps + 3 + (record[pps + 2] ?? 0));
  const doubled = (set: Uint8Array) => [0, set.length + 1, set[0] ?? 0, ...set];
  return Uint8Array.of(...record.subarray(0, 4), 3, 1, ...doubled(sps), 1, ...doubled(picture));
}

test('the malformed decoder configuration of Firefox is mended: ffmpeg reads the file without a warning', async () => {
  const Original = globalThis.VideoEncoder;
  let malformed = 0;
  globalThis.VideoEncoder = class extends Original {
    constructor(init: VideoEncoderInit) {
      super({
        ...init,
        output(chunk, meta) {
          const config = meta?.decoderConfig;
          if (config?.description) {
            config.description = asInFirefox(toBytes(config.description));
            malformed += 1;
          }
          init.output(chunk, meta);
        },
      });
    }
  };
  try {
    const writer = await createRgbaWriter(optionsFor(160, 96, 3, 'webcodecs'));
    for (let i = 0; i < 3; i++) await writer.add(new Uint8ClampedArray(160 * 96 * 4).fill(40 * i));
    expect(await warningsOf(await writer.finish())).toEqual([]);
    expect(malformed).toBe(1);
  } finally {
    globalThis.VideoEncoder = Original;
  }
});

/** The encoded frames of a video, one after another. */
async function packetsOf(video: Blob): Promise<readonly Uint8Array[]> {
  const input = new Input({ source: new BlobSource(video), formats: [MP4] });
  const track = await input.getPrimaryVideoTrack();
  if (!track) throw new Error('no video track');
  const packets: Uint8Array[] = [];
  for await (const { data } of new EncodedPacketSink(track).packets()) packets.push(data);
  input.dispose();
  return packets;
}

test('ffmpeg encodes the same frames to the same packets', { tags: ['full'] }, async () => {
  const encode = async () => {
    const writer = await createRgbaWriter(optionsFor(320, 192, 10, 'ffmpeg'));
    const frame = new Uint8ClampedArray(320 * 192 * 4);
    for (let i = 0; i < 10; i++) {
      paint(frame, 320, 192, i);
      await writer.add(frame);
    }
    return packetsOf(await writer.finish());
  };
  const first = await encode();
  expect(first).toHaveLength(10);
  expect(await encode()).toEqual(first);
});

test('auto takes WebCodecs where the browser can encode', async () => {
  const writer = await createRgbaWriter(optionsFor(1280, 720, 121, 'auto'));
  expect(writer.encoder).toBe('webcodecs');
  await writer.cancel();
});

describe('failures', () => {
  const { VideoEncoder } = globalThis;
  const { encode } = VideoEncoder.prototype;
  afterEach(() => {
    globalThis.VideoEncoder = VideoEncoder;
    VideoEncoder.prototype.encode = encode;
  });

  test('a browser without an encoder: auto takes ffmpeg, webcodecs says so', async () => {
    Reflect.deleteProperty(globalThis, 'VideoEncoder');
    // A size of its own: what is known of other sizes is remembered.
    const writer = await createRgbaWriter(optionsFor(52, 36, 1, 'auto'));
    expect(writer.encoder).toBe('ffmpeg');
    await writer.add(new Uint8ClampedArray(52 * 36 * 4));
    expect((await inspectVideo(await writer.finish())).frames).toBe(1);
    const failure = await failureOf(createRgbaWriter(optionsFor(52, 36, 1, 'webcodecs')));
    expect(failure.toRecord()).toEqual({
      code: 'ENCODER_FAILED',
      message: 'This browser cannot encode H.264 at 52×36.',
      remedy: 'Use Chrome, Edge, Firefox or Safari, or the ffmpeg encoder.',
    });
  });

  test('a size that no browser encodes', async () => {
    const failure = await failureOf(createRgbaWriter(optionsFor(65_534, 65_534, 1, 'webcodecs')));
    expect(failure.code).toBe('ENCODER_FAILED');
    expect(failure.message).toContain('65534×65534');
  });

  test('an encoder that breaks in the middle: its own message is passed on', async () => {
    const writer = await createRgbaWriter(optionsFor(64, 64, 9, 'webcodecs'));
    const frame = new Uint8ClampedArray(64 * 64 * 4);
    await writer.add(frame);
    VideoEncoder.prototype.encode = () => {
      throw new DOMException('The encoder ran out of luck.', 'OperationError');
    };
    const failure = await failureOf(writer.add(frame));
    expect(failure.code).toBe('ENCODER_FAILED');
    expect(failure.message).toContain('The encoder ran out of luck.');
    expect(await failureOf(writer.finish())).toBe(failure);
  });

  test('ffmpeg that is not there', async () => {
    const ffmpegBase = new URL('/nowhere/', location.origin).href;
    const failure = await failureOf(
      createRgbaWriter({ ...optionsFor(32, 32, 1, 'ffmpeg'), ffmpegBase }),
    );
    expect(failure.code).toBe('ENCODER_FAILED');
    expect(failure.message).toContain('ffmpeg could not be started');
  });

  test('ffmpeg that refuses: the reason from its log is passed on', async () => {
    // x264 takes no more than 16384 pixels a side.
    const writer = await createRgbaWriter(optionsFor(16_400, 2, 1, 'ffmpeg'));
    await writer.add(new Uint8ClampedArray(16_400 * 2 * 4));
    const failure = await failureOf(writer.finish());
    expect(failure.code).toBe('ENCODER_FAILED');
    expect(failure.message.length).toBeGreaterThan(40);
  });

  test.each([
    [31, 32, 1, 24],
    [32, 0, 1, 24],
    [32, 32, 0, 24],
    [32, 32, 1, 0],
  ])('%i×%i, %i frames at %i fps is a TypeError', async (width, height, frames, frameRate) => {
    const options = { ...optionsFor(width, height, frames, 'auto'), frameRate };
    await expect(createRgbaWriter(options)).rejects.toThrow(TypeError);
  });
});

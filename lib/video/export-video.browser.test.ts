import { BlobSource, Input, WEBM } from 'mediabunny';
import { beforeAll, expect, test } from 'vitest';
import { parseParameters } from '../contract';
import { failureOf } from '../contract/testing/failure';
import { createVideoWriter } from './encoder';
import { canExport, exportFormats, exportVideo } from './export-video';
import { createVideoMetadata } from './metadata';

const [width, height] = [640, 352];
const frames = 12;
const frameRate = 24;
let video: Blob;

/** The grey of a frame. */
const greyOf = (frame: number) => 40 + 15 * frame;

beforeAll(async () => {
  const metadata = createVideoMetadata({
    id: 'boat',
    model: 'tiny',
    profile: 'standard',
    backend: 'wasm',
    parameters: parseParameters({ prompt: 'a boat', seed: 1 }),
    createdAt: '2026-01-02T03:04:05.678Z',
  });
  const writer = await createVideoWriter({ width, height, frames, frameRate, metadata });
  for (let frame = 0; frame < frames; frame++) {
    await writer.add(new Uint8ClampedArray(width * height * 4).fill(greyOf(frame)));
  }
  video = await writer.finish();
});

function options() {
  const shares: number[] = [];
  const { signal } = new AbortController();
  return { signal, shares, onProgress: (share: number) => shares.push(share) };
}

test('this browser writes all formats', async () => {
  const can = await Promise.all(
    exportFormats.map((format) => canExport(format, { width, height })),
  );
  expect(can).toEqual([true, true, true]);
});

test.each(['gif', 'webp'] as const)('a loop as %s', async (format) => {
  const { shares, ...rest } = options();
  const made = await exportVideo(video, format, rest);
  expect(made.type).toBe(`image/${format}`);
  // Half a second in steps of 80 ms.
  expect(shares).toEqual([1, 2, 3, 4, 5, 6].map((done) => done / 6));
  const decoder = new ImageDecoder({ type: made.type, data: await made.arrayBuffer() });
  await Promise.all([decoder.tracks.ready, decoder.completed]);
  expect(decoder.tracks.selectedTrack).toMatchObject({
    frameCount: 6,
    animated: true,
    repetitionCount: Number.POSITIVE_INFINITY,
  });
  for (let index = 0; index < 6; index++) {
    const { image } = await decoder.decode({ frameIndex: index });
    expect(image).toMatchObject({ displayWidth: 480, displayHeight: 264, duration: 80_000 });
    const canvas = new OffscreenCanvas(480, 264);
    const context = canvas.getContext('2d');
    context?.drawImage(image, 0, 0);
    image.close();
    const grey = context?.getImageData(240, 132, 1, 1).data[1] ?? 0;
    expect(Math.abs(grey - greyOf(Math.floor(index * 0.08 * frameRate)))).toBeLessThan(9);
  }
});

test('a WebM of all frames in their size, which does not say how it was made', async () => {
  const made = await exportVideo(video, 'webm', options());
  const input = new Input({ source: new BlobSource(made), formats: [WEBM] });
  const track = await input.getPrimaryVideoTrack();
  expect(track).toMatchObject({ displayWidth: width, displayHeight: height });
  expect((await track?.computePacketStats())?.packetCount).toBe(frames);
  expect((await input.getMetadataTags()).comment).toBeUndefined();
  input.dispose();
});

test.each(exportFormats)(
  '%s: a cancel ends it, and what is no video is refused',
  async (format) => {
    const cancelled = new AbortController();
    cancelled.abort();
    const { onProgress } = options();
    const work = exportVideo(video, format, { signal: cancelled.signal, onProgress });
    expect(await failureOf(work)).toMatchObject({ code: 'CANCELLED' });
    const nothing = exportVideo(new Blob(['no video']), format, options());
    expect(await failureOf(nothing)).toMatchObject({ code: 'VIDEO_UNREADABLE' });
  },
);

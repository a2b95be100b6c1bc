import { BlobSource, Input, MP4, VideoSampleSink, WEBM } from 'mediabunny';
import { beforeAll, expect, test } from 'vitest';
import { failureOf } from '../contract/testing/failure';
import { canExport, exportFormats, exportVideo, toPalette } from './export-video';
import { coverCrop } from './frame-image';
import { FrameScaler } from './frame-scaler';
import { decodeImage } from './image';
import { createRgbaWriter } from './testing/i420';

const [width, height] = [640, 352];
const frames = 12;
const frameRate = 24;
let video: Blob;

/** The grey of a frame. */
const greyOf = (frame: number) => 40 + 15 * frame;

beforeAll(async () => {
  const writer = await createRgbaWriter({ width, height, frames, frameRate });
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
  expect(can).toEqual([true, true]);
});

test('a GIF, which is a loop', async () => {
  const { shares, ...rest } = options();
  const made = await exportVideo(video, 'gif', rest);
  expect(made.type).toBe('image/gif');
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

test.each(['aurora', 'balloons', 'lighthouse', 'street'])(
  'a GIF of %s has the colours of its frames',
  async (name) => {
    const photo = await fetch(new URL(`../../public/samples/${name}.jpg`, import.meta.url));
    const pixels = await decodeImage(await photo.blob());
    const size = { width: 1280, height: 720 };
    const frame = new FrameScaler(size, size).scale(coverCrop(pixels, size.width, size.height));
    const writer = await createRgbaWriter({ ...size, frames: 1, frameRate });
    await writer.add(frame);
    const still = await writer.finish();
    const gif = await createImageBitmap(await exportVideo(still, 'gif', options()));
    const canvas = new OffscreenCanvas(480, 270);
    const context = canvas.getContext('2d', { willReadFrequently: true });
    if (!context) throw new Error('no canvas');
    context.imageSmoothingQuality = 'high';
    const draw = (image: CanvasImageSource) => {
      context.drawImage(image, 0, 0, 480, 270);
      return context.getImageData(0, 0, 480, 270).data;
    };
    const made = draw(gif);
    const input = new Input({ source: new BlobSource(still), formats: [MP4] });
    const track = await input.getPrimaryVideoTrack();
    if (!track) throw new Error('no track');
    const sample = await new VideoSampleSink(track).getSample(0);
    sample?.draw(context, 0, 0, 480, 270);
    sample?.close();
    input.dispose();
    const wanted = context.getImageData(0, 0, 480, 270).data;
    const squares = made.reduce((sum, value, at) => sum + (value - (wanted[at] ?? 0)) ** 2, 0);
    const decibel = 10 * Math.log10(255 ** 2 / (squares / (480 * 270 * 3)));
    expect(decibel, `${decibel} dB`).toBeGreaterThan(42);
  },
);

test('a gradient has as many colours as a GIF can have', () => {
  const rgba = new Uint8ClampedArray(512 * 64 * 4);
  for (let i = 0; i < rgba.length; i += 4) {
    const x = (i / 4) % 512;
    rgba.set([x / 4, x / 3, 60 + x / 8, 255], i);
  }
  const { palette, indices } = toPalette(rgba, 256);
  expect(palette).toHaveLength(256);
  const off = indices.map((index, i) =>
    Math.max(...(palette[index] ?? []).map((value, c) => Math.abs(value - (rgba[4 * i + c] ?? 0)))),
  );
  expect(off.reduce((most, one) => Math.max(most, one), 0)).toBeLessThanOrEqual(2);
  const plain = toPalette(new Uint8ClampedArray(400).fill(7), 256);
  expect(plain.palette).toEqual([[7, 7, 7]]);
});

import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Framing } from '../contract';
import { createRgbaWriter } from '../video/testing/i420';
import { KinoraDatabase } from './database';
import { makeThumbnail, savePoster } from './poster';
import { PredictionStore } from './store';
import { cleanUp } from './testing/clean-up';
import { newPrediction, resultOf, started } from './testing/prediction';
import { writeVideo } from './videos';

let store: PredictionStore;

beforeEach(() => {
  store = new PredictionStore(new KinoraDatabase(`test-${crypto.randomUUID()}`));
});

afterEach(() => cleanUp(store.database));

/** A finished prediction. */
async function completed() {
  const prediction = newPrediction();
  const { id } = prediction;
  await store.create(prediction, { image: new Blob(['i']), imageName: 'still.png', loras: [] });
  await store.dispatch(id, started);
  const row = await store.dispatch(id, { type: 'completed', at: 'c', result: resultOf(id) });
  if (row.status !== 'completed') throw new Error('not completed');
  return row;
}

/** A video whose first frames are blue, then yellow from a third of its length on. */
async function colouredVideo(): Promise<Blob> {
  const [width, height, frames] = [640, 352, 12];
  const writer = await createRgbaWriter({ width, height, frames, frameRate: 24 });
  for (let frame = 0; frame < frames; frame++) {
    const pixel = frame < 4 ? [0, 0, 255, 255] : [255, 255, 0, 255];
    await writer.add(new Uint8ClampedArray(width * height * 4).map((_, at) => pixel[at % 4] ?? 0));
  }
  return writer.finish();
}

test('the poster is a small picture of the middle of the video, and goes with it', async () => {
  const row = await completed();
  await writeVideo(row.result.videoFile, await colouredVideo());
  expect(await savePoster(store, row)).toBe(true);
  const poster = await store.poster(row.id);
  expect(poster?.type).toBe('image/jpeg');
  const bitmap = await createImageBitmap(poster ?? new Blob());
  expect([bitmap.width, bitmap.height]).toEqual([480, 264]);
  const context = new OffscreenCanvas(480, 264).getContext('2d');
  context?.drawImage(bitmap, 0, 0);
  const [red = 0, , blue = 255] = context?.getImageData(240, 132, 1, 1).data ?? [];
  expect(red).toBeGreaterThan(200);
  expect(blue).toBeLessThan(60);

  await store.remove([row.id]);
  expect(await store.poster(row.id)).toBeDefined(); // For an undo.
  await store.purge([row.id]);
  expect(await store.poster(row.id)).toBeUndefined();
  await store.setPoster(row.id, new Blob(['late']));
  expect(await store.poster(row.id)).toBeUndefined();
});

test('a video that cannot be decoded has no poster', async () => {
  const row = await completed();
  await writeVideo(row.result.videoFile, new Blob(['no video']));
  expect(await savePoster(store, row)).toBe(false);
  expect(await store.poster(row.id)).toBeUndefined();
});

/** A picture whose left half is red and right half is transparent. */
async function halfTransparent(): Promise<Blob> {
  const canvas = new OffscreenCanvas(400, 400);
  const context = canvas.getContext('2d');
  if (!context) throw new Error('no canvas');
  context.fillStyle = '#ff0000';
  context.fillRect(0, 0, 200, 400);
  return canvas.convertToBlob();
}

/** Size of a thumbnail, and its colours at places from 0 to 1. */
async function look(
  framing: Framing | undefined,
  ...places: readonly (readonly [number, number])[]
) {
  const thumbnail = await makeThumbnail(await halfTransparent(), framing, '1280*720');
  if (!thumbnail) throw new Error('no thumbnail');
  const bitmap = await createImageBitmap(thumbnail);
  const { width, height } = bitmap;
  const context = new OffscreenCanvas(width, height).getContext('2d');
  context?.drawImage(bitmap, 0, 0);
  const colours = places.map(([x, y]) => {
    const pixel = context?.getImageData(Math.round(x * width), Math.round(y * height), 1, 1).data;
    // JPEG changes them a little.
    return [...(pixel ?? [])]
      .slice(0, 3)
      .map((value) => (value > 127 ? 1 : 0))
      .join('');
  });
  return { size: [width, height], colours };
}

const left = [0.2, 0.5] as const;
const right = [0.8, 0.5] as const;

test('a thumbnail shows the picture as the video does, transparent parts over the colour of the background', async () => {
  expect(await look(undefined, left, right)).toEqual({ size: [320, 180], colours: ['100', '111'] });
  const whole = { zoom: 0, x: 0.5, y: 0.5, background: '#00ff00' };
  const bar = [0.05, 0.5] as const;
  expect((await look(whole, bar, [0.4, 0.5], [0.6, 0.5])).colours).toEqual(['010', '100', '010']);
  // Twice as large, at the left edge of the picture: nothing transparent is in sight.
  const zoomed = { zoom: 2, x: 0, y: 0.5, background: 'blur' };
  expect((await look(zoomed, left, right)).colours).toEqual(['100', '100']);
});

test('what is no picture has no thumbnail', async () => {
  expect(await makeThumbnail(new Blob(['text']))).toBeNull();
});

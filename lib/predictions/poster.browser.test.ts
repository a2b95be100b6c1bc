import { afterEach, beforeEach, expect, test } from 'vitest';
import { createRgbaWriter } from '../video/testing/i420';
import { KinoraDatabase } from './database';
import { savePoster } from './poster';
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

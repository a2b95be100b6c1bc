import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Prediction } from '../contract';
import { KinoraDatabase } from './database';
import { PredictionStore } from './store';
import { bytesOf, deletableVideos, deleteVideos, videosOf } from './stored-videos';
import { cleanUp } from './testing/clean-up';
import { newPrediction, resultOf, started } from './testing/prediction';
import { listVideos, writeVideo } from './videos';

let store: PredictionStore;

beforeEach(() => {
  store = new PredictionStore(new KinoraDatabase(`test-${crypto.randomUUID()}`));
});

afterEach(() => cleanUp(store.database));

const now = Date.parse('2025-03-01T00:00:00.000Z');

/** A finished video that is so many days old. */
async function video(days: number, fields: object = {}): Promise<string> {
  const { id } = newPrediction();
  await store.create(newPrediction({ id }), {
    image: new Blob(['i']),
    imageName: 'i.png',
    loras: [],
  });
  const at = new Date(now - days * 86_400_000).toISOString();
  await store.dispatch(id, started);
  await writeVideo(`${id}.mp4`, new Blob(['video']));
  const row = await store.dispatch(id, { type: 'completed', at, result: resultOf(id) });
  await store.database.predictions.put({ ...row, ...fields });
  return id;
}

function idsOf(rows: readonly Prediction[]): string[] {
  return rows.map(({ id }) => id).sort();
}

test('old videos are deleted for good; younger ones, favourites and other rows stay', async () => {
  const [old, week, today] = [await video(40), await video(7), await video(0)];
  const favourite = await video(400, { favourite: true });
  const other = newPrediction();
  await store.create(other, { image: new Blob(['i']), imageName: 'i.png', loras: [] });
  const videos = videosOf(await store.list());
  expect(bytesOf(videos)).toBe(20);
  expect(idsOf(deletableVideos(videos, 0, now))).toEqual([old, week, today].sort());
  const chosen = deletableVideos(videos, 7, now);
  expect(idsOf(chosen)).toEqual([old, week].sort());
  await deleteVideos(store, chosen);
  expect(idsOf(await store.list())).toEqual([today, favourite, other.id].sort());
  expect((await listVideos()).sort()).toEqual([`${today}.mp4`, `${favourite}.mp4`].sort());
  expect(await store.restore([old])).toEqual([]);
});

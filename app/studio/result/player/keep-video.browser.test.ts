import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Completed, safetySchema } from '../../../../lib/contract';
import { KinoraDatabase } from '../../../../lib/predictions/database';
import { PredictionStore } from '../../../../lib/predictions/store';
import { sweep } from '../../../../lib/predictions/sweep';
import { cleanUp } from '../../../../lib/predictions/testing/clean-up';
import { newPrediction, resultOf } from '../../../../lib/predictions/testing/prediction';
import { readVideo, writeVideo } from '../../../../lib/predictions/videos';
import { inspectVideo } from '../../../../lib/video/inspect';
import { createVideoMetadata } from '../../../../lib/video/metadata';
import { createRgbaWriter } from '../../../../lib/video/testing/i420';
import { cutParts, openParts } from './cut-parts';
import { keepVideo } from './keep-video';

let store: PredictionStore;

beforeEach(() => {
  store = new PredictionStore(new KinoraDatabase(`test-${crypto.randomUUID()}`));
});

afterEach(() => cleanUp(store.database));

const frames = 24;

/** A finished video with its row, file and start image. */
async function makeVideo(id: string, safety: 'clear' | 'flagged'): Promise<Completed> {
  const result = {
    ...resultOf(id),
    frames,
    safety: safetySchema.parse({ status: safety }),
  };
  const at = '2026-01-01T00:00:00.000Z';
  const row = newPrediction({ id, status: 'completed', completedAt: at, result });
  const [width, height] = [160, 96];
  const writer = await createRgbaWriter({ width, height, frames, frameRate: 24 });
  for (let i = 0; i < frames; i++) {
    await writer.add(new Uint8ClampedArray(width * height * 4).fill(5 * i));
  }
  await writeVideo(`${id}.mp4`, await writer.finish());
  await store.create(row, { image: new Blob([id]), imageName: 'still.png', loras: [] });
  return row as Completed;
}

const [first, second] = ['a'.repeat(32), 'b'.repeat(32)] as const;
const { signal } = new AbortController();

test('joined videos become a row of their own, and the old ones stay', async () => {
  const videos = [await makeVideo(first, 'clear'), await makeVideo(second, 'flagged')];
  const joined = await cutParts(await openParts(videos), { from: 0, to: 47 }, { signal });
  const third = await keepVideo(store, joined.video, joined);

  // The next start of the page finds nothing to delete.
  await sweep(store);
  const ids = (await store.list()).map(({ id }) => id);
  expect(ids.sort()).toEqual([first, second, third].sort());
  const row = await store.get(third);
  expect(row).toMatchObject({
    status: 'completed',
    parts: [
      { id: first, prompt: 'a boat', seed: 4, from: 0, to: 23 },
      { id: second, prompt: 'a boat', seed: 4, from: 0, to: 24 },
    ],
    result: {
      frames: 47,
      videoBytes: joined.video.size,
      safety: { status: 'flagged' },
      timings: { total: 42 },
    },
  });
  expect(await (await store.source(third))?.image.text()).toBe(first);
  const file = await readVideo(`${third}.mp4`);
  expect(await inspectVideo(file)).toMatchObject({ frames: 47 });
  expect(await file.text()).not.toContain('boat');
  // What its file tells once it leaves: the settings of the first part, and the flag of any.
  expect(createVideoMetadata(row as Completed)).toMatchObject({
    id: third,
    prompt: 'a boat',
    safety: { status: 'flagged' },
    parts: [{ id: first }, { id: second }],
  });
});

test('what a trimmed video does not show is not among its parts', async () => {
  const videos = [await makeVideo(first, 'clear'), await makeVideo(second, 'clear')];
  const trimmed = await cutParts(await openParts(videos), { from: 30, to: 40 }, { signal });
  expect(trimmed.copied).toBe(false);
  const third = await keepVideo(store, trimmed.video, trimmed);
  expect(await store.get(third)).toMatchObject({
    parts: [{ id: second, from: 7, to: 17 }],
    result: { frames: 10, encoder: 'webcodecs', timings: { total: 21 } },
  });
  expect(await (await store.source(third))?.image.text()).toBe(second);
});

test('a video that was made larger and smoother is kept with what was done to it', async () => {
  const video = await makeVideo(first, 'clear');
  const writer = await createRgbaWriter({ width: 320, height: 192, frames: 2, frameRate: 48 });
  for (let i = 0; i < 2; i++) await writer.add(new Uint8ClampedArray(320 * 192 * 4));
  const third = await keepVideo(store, await writer.finish(), {
    used: [{ row: video, from: 0, to: frames }],
    finishing: { upscale: 2, upscaler: 'realesr-general-x4v3', smooth: true },
    copied: false,
  });
  expect(await store.get(third)).toMatchObject({
    parameters: { upscale: 2, upscaler: 'realesr-general-x4v3', smooth: true },
    parts: [{ id: first, from: 0, to: frames }],
    result: { width: 320, height: 192, frames: 2, frameRate: 48 },
  });
  expect(await store.get(first)).toEqual(video);
});

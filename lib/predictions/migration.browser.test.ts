import Dexie from 'dexie';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { parseParameters } from '../contract/request';
import { createVideoWriter } from '../video/encoder';
import { readImageFile } from '../video/image';
import { createVideoMetadata, readVideoMetadata, type VideoMetadata } from '../video/metadata';
import { KinoraDatabase, loadDraft } from './database';
import type { EngineClient } from './engine-client';
import { Runner } from './runner';
import { PredictionStore } from './store';
import { cleanUp } from './testing/clean-up';
import { readVideo } from './videos';

/*
 * A browser profile of Kinora 0.1.0 before predictions had a profile: rows, drafts and a video exactly as
 * that version stored them. Do not adapt them to later types.
 */

const id = (digit: string) => digit.repeat(32);
const parameters = parseParameters({ prompt: 'a boat', seed: 4, num_inference_steps: 6 });
const base = { model: 'tiny', backend: 'wasm', parameters };
const completed = {
  ...base,
  id: id('a'),
  createdAt: '2026-01-01T00:00:00.000Z',
  status: 'completed',
  startedAt: '2026-01-01T00:00:01.000Z',
  completedAt: '2026-01-01T00:01:00.000Z',
  result: {
    videoFile: `${id('a')}.mp4`,
    videoBytes: 0,
    size: '1280*720',
    width: 64,
    height: 48,
    frames: 12,
    seed: 4,
    model: 'tiny',
    backend: 'wasm',
    encoder: 'webcodecs',
    finishedEarly: false,
    timings: { load: 1, text: 1, image: 1, denoise: 1, decode: 1, finish: 1, total: 6 },
  },
};
const failed = {
  ...base,
  id: id('b'),
  createdAt: '2026-01-02T00:00:00.000Z',
  status: 'failed',
  completedAt: '2026-01-02T00:00:09.000Z',
  error: { code: 'DEVICE_LOST', message: 'The GPU was lost.', remedy: 'Run it again.' },
};
const interrupted = {
  ...base,
  id: id('c'),
  createdAt: '2026-01-03T00:00:00.000Z',
  status: 'processing',
  startedAt: '2026-01-03T00:00:01.000Z',
};
const deleted = { ...failed, id: id('d') };
const draftValues = {
  prompt: 'half a sentence',
  negative_prompt: '',
  size: '720*1280',
  num_inference_steps: '12',
  duration: '5',
  guidance_scale: '5',
  flow_shift: '5',
  seed: '-1',
  model: 'tiny',
  backend: 'wasm',
  memoryBudget: '8',
};

let name: string;
let store: PredictionStore;
/** Recovery and listing never call the engine. */
const engine: EngineClient = {
  open: () => {
    throw new TypeError('The engine must not start.');
  },
  close: () => {},
};

beforeEach(async () => {
  name = `test-${crypto.randomUUID()}`;
  await writeOldDatabase();
  await writeOldVideo();
  store = new PredictionStore(new KinoraDatabase(name));
});

afterEach(() => cleanUp(store.database));

async function writeOldDatabase(): Promise<void> {
  const old = new Dexie(name);
  old.version(1).stores({
    predictions: 'id, createdAt, status',
    sources: 'predictionId',
    trash: 'id, removedAt',
    drafts: 'id',
  });
  const image = new Blob(['image bytes'], { type: 'image/png' });
  const source = (predictionId: string) => ({
    predictionId,
    image,
    imageName: 'still.png',
    loras: [{ name: 'style.safetensors', file: new Blob(['lora bytes']) }],
  });
  await old.table('predictions').bulkAdd([completed, failed, interrupted]);
  await old
    .table('sources')
    .bulkAdd([
      { ...source(completed.id), thumbnail: new Blob(['jpeg bytes'], { type: 'image/jpeg' }) },
      source(failed.id),
      source(interrupted.id),
    ]);
  await old.table('trash').add({
    id: deleted.id,
    prediction: deleted,
    source: source(deleted.id),
    removedAt: Date.now(),
  });
  await old.table('drafts').bulkAdd([
    { id: 'values', content: draftValues },
    { id: 'files', content: { image: { name: 'still.png', file: image }, loras: [] } },
  ]);
  old.close();
}

/** A playable MP4 whose metadata has no profile. */
async function writeOldVideo(): Promise<void> {
  const { profile: _, ...metadata } = createVideoMetadata({
    ...{ id: completed.id, model: 'tiny', profile: 'standard', backend: 'wasm', parameters },
    createdAt: completed.createdAt,
  });
  const [width, height, frames] = [64, 48, 12];
  const writer = await createVideoWriter({
    ...{ width, height, frames, frameRate: 24 },
    metadata: metadata as VideoMetadata,
  });
  for (let frame = 0; frame < frames; frame++) {
    await writer.add(new Uint8ClampedArray(width * height * 4).fill(255));
  }
  const root = await navigator.storage.getDirectory();
  const folder = await root.getDirectoryHandle('videos', { create: true });
  const file = await folder.getFileHandle(completed.result.videoFile, { create: true });
  await (await writer.finish()).stream().pipeTo(await file.createWritable());
}

test('rows of all tables get the standard profile and keep everything else', async () => {
  expect(await store.list()).toEqual(
    [interrupted, failed, completed].map((row) => ({ ...row, profile: 'standard' })),
  );
  const source = await store.source(completed.id);
  expect(await source?.image.text()).toBe('image bytes');
  expect(await source?.loras[0]?.file.text()).toBe('lora bytes');
  expect(await source?.thumbnail?.text()).toBe('jpeg bytes');
  expect(await store.restore([deleted.id])).toEqual([deleted.id]);
  expect(await store.get(deleted.id)).toEqual({ ...deleted, profile: 'standard' });
  expect(await (await store.source(deleted.id))?.image.text()).toBe('image bytes');
});

test('the page starts: the unfinished run is interrupted, the video stays and plays', async () => {
  const runner = new Runner(store, engine, readImageFile);
  expect(await runner.recover()).toBe(1);
  expect(await store.get(interrupted.id)).toMatchObject({
    status: 'failed',
    profile: 'standard',
    error: { code: 'INTERRUPTED' },
  });
  expect(await store.get(completed.id)).toMatchObject({ status: 'completed' });

  const video = await readVideo(completed.result.videoFile);
  const element = document.createElement('video');
  const url = URL.createObjectURL(video);
  const loaded = new Promise((resolve, reject) => {
    element.addEventListener('loadeddata', resolve);
    element.addEventListener('error', () => reject(element.error));
  });
  element.src = url;
  await loaded;
  expect([element.videoWidth, element.videoHeight, element.duration]).toEqual([64, 48, 0.5]);
  URL.revokeObjectURL(url);
  expect(await readVideoMetadata(video)).toMatchObject({ profile: 'standard', seed: 4 });
});

test('the draft of the form is restored, files included', async () => {
  expect(await loadDraft(store.database, 'values')).toEqual(draftValues);
  const files = (await loadDraft(store.database, 'files')) as { image: { file: Blob } };
  expect(await files.image.file.text()).toBe('image bytes');
});

test('the database is migrated once', async () => {
  await store.list();
  expect(store.database.verno).toBe(3);
  store.database.close();
  store = new PredictionStore(new KinoraDatabase(name));
  expect(await store.list()).toHaveLength(3);
});

import { afterEach, beforeEach, expect, test } from 'vitest';
import { holdTimers } from '../weights/testing/held-timers';
import { KinoraDatabase, loadDraft, saveDraft } from './database';
import { predictionLock } from './locks';
import { PredictionStore } from './store';
import { recoverInterrupted, sweep, watchRuns } from './sweep';
import { cleanUp } from './testing/clean-up';
import { newPrediction, resultOf, started } from './testing/prediction';
import { listVideos, readVideo, removeVideo, writeVideo } from './videos';

let store: PredictionStore;

beforeEach(() => {
  store = new PredictionStore(new KinoraDatabase(`test-${crypto.randomUUID()}`));
});

afterEach(() => cleanUp(store.database));

async function create(prediction = newPrediction()): Promise<string> {
  const image = new Blob(['image bytes'], { type: 'image/png' });
  const loras = [{ name: 'style.safetensors', file: new Blob(['lora bytes']) }];
  await store.create(prediction, { image, imageName: 'still.png', loras });
  return prediction.id;
}

async function complete(id: string): Promise<void> {
  const at = new Date().toISOString();
  await writeVideo(`${id}.mp4`, new Blob(['video']));
  await store.dispatch(id, started);
  await store.dispatch(id, { type: 'completed', at, result: resultOf(id) });
}

test('stores image and adapters with the row, and lists the newest first', async () => {
  const old = await create(newPrediction());
  const young = await create(newPrediction({ createdAt: '2025-02-01T00:00:00.000Z' }));
  expect((await store.list()).map(({ id }) => id)).toEqual([young, old]);
  const source = await store.source(old);
  expect(await source?.image.text()).toBe('image bytes');
  expect(await source?.loras[0]?.file?.text()).toBe('lora bytes');
});

test('dispatch stores valid events, ignores others, and rejects for a missing row', async () => {
  const id = await create();
  await complete(id);
  const error = { code: 'CANCELLED', message: 'm', remedy: 'r' } as const;
  const after = await store.dispatch(id, { type: 'failed', at: 'later', error });
  expect(after.status).toBe('completed');
  expect((await store.get(id))?.status).toBe('completed');
  await expect(store.dispatch('missing', started)).rejects.toMatchObject({
    code: 'INTERNAL',
  });
});

test('of two events at the same time exactly one wins', async () => {
  const id = await create();
  await store.dispatch(id, started);
  const error = { code: 'INTERRUPTED', message: 'm', remedy: 'r' } as const;
  const [first, second] = await Promise.all([
    store.dispatch(id, { type: 'completed', at: 'a', result: resultOf(id) }),
    store.dispatch(id, { type: 'failed', at: 'b', error }),
  ]);
  expect(first).toEqual(second);
  expect(await store.get(id)).toEqual(first);
});

test('create is all or nothing', async () => {
  const id = await create();
  await expect(create(newPrediction({ id }))).rejects.toMatchObject({ code: 'INTERNAL' });
  expect(await store.list()).toHaveLength(1);
});

test('remove hides, restore undoes it, purge deletes the video', async () => {
  const id = await create();
  await store.dispatch(id, started);
  expect(await store.remove([id])).toEqual([]); // A tab works on it.
  await complete(id);
  const before = await store.get(id);

  expect(await store.remove([id])).toEqual([id]);
  expect(await store.list()).toEqual([]);
  await sweep(store); // The video must stay for an undo.
  await store.purge(); // It was deleted too recently.
  expect(await store.restore([id])).toEqual([id]);
  expect(await store.get(id)).toEqual(before);
  expect(await (await store.source(id))?.image.text()).toBe('image bytes');
  expect((await readVideo(`${id}.mp4`)).size).toBe(5);

  await store.remove([id]);
  await store.purge([id]);
  expect(await listVideos()).toEqual([]);
  expect(await store.restore([id])).toEqual([]);
  expect(await store.source(id)).toBeUndefined();
});

test('sweep removes orphans, half-written files and rows without a video, and no others', async () => {
  const kept = await create();
  await complete(kept);
  const lost = await create();
  await complete(lost);
  await removeVideo(`${lost}.mp4`);
  const unfinished = await create();
  await writeVideo('orphan.mp4', new Blob(['x']));
  await writeVideo('half.mp4.part', new Blob(['x']));

  await navigator.locks.request(predictionLock(unfinished), async () => {
    await writeVideo(`${unfinished}.mp4`, new Blob(['x'])); // written, the row not yet completed
    await sweep(store);
  });
  expect((await listVideos()).sort()).toEqual([`${kept}.mp4`, `${unfinished}.mp4`].sort());
  expect((await store.list()).map(({ id }) => id).sort()).toEqual([kept, unfinished].sort());
});

test('a video that another tab completes during the sweep stays', async () => {
  const id = await create();
  /** Completes the row between the sweep's two listings, as another tab could. */
  class Watched extends PredictionStore {
    override async list() {
      await complete(id);
      return super.list();
    }
  }
  await sweep(new Watched(store.database));
  expect(await store.get(id)).toMatchObject({ status: 'completed' });
  expect(await listVideos()).toEqual([`${id}.mp4`]);
});

test('a run without a tab is interrupted; a run of another tab when that tab releases its lock', async () => {
  const waiting = await create();
  const processing = await create();
  const owned = await create();
  for (const id of [processing, owned]) await store.dispatch(id, started);
  const done = await create();
  await complete(done);

  let release = () => {};
  const held = navigator.locks.request(
    predictionLock(owned),
    () =>
      new Promise<void>((resolve) => {
        release = resolve;
      }),
  );
  expect(await recoverInterrupted(store)).toBe(1);
  expect(await store.get(processing)).toMatchObject({
    status: 'failed',
    error: { code: 'INTERRUPTED' },
  });
  expect(await store.get(waiting)).toMatchObject({ status: 'created' });
  expect(await store.get(owned)).toMatchObject({ status: 'processing' });
  expect(await store.get(done)).toMatchObject({ status: 'completed' });

  const end = watchRuns(store, () => false);
  release();
  await held;
  const statusOfOwned = async () => (await store.get(owned))?.status;
  await expect.poll(statusOfOwned, { timeout: 30_000 }).toBe('failed');
  end();
});

test('drafts are restored, files included', async () => {
  await saveDraft(store.database, 'values', { prompt: 'half a sen' });
  await saveDraft(store.database, 'files', { image: new Blob(['pixels']) });
  expect(await loadDraft(store.database, 'values')).toEqual({ prompt: 'half a sen' });
  const files = (await loadDraft(store.database, 'files')) as { image: Blob };
  expect(await files.image.text()).toBe('pixels');
});

test('what the full disk held back outlives a lost connection, and is given up with its row', {
  tags: ['full'],
}, async () => {
  const { database } = store;
  const retries = holdTimers(5000);
  const [kept, gone] = [await create(), await create()];
  for (const id of [kept, gone]) await store.dispatch(id, started);
  const error = { code: 'INTERNAL', message: 'm', remedy: 'r' } as const;
  const refuse = () => {
    throw new DOMException('full', 'QuotaExceededError');
  };
  database.predictions.hook('updating', refuse);
  for (const id of [kept, gone]) {
    expect(await store.note(id, { type: 'failed', at: 'now', error })).toHaveProperty('error');
  }
  database.predictions.hook('updating').unsubscribe(refuse);
  await database.predictions.delete(gone);
  database.close();
  // Both are tried once while there is no connection.
  retries.end();
  await expect.poll(() => retries.running.length).toBe(2);
  await database.open();
  retries.end();
  expect(await store.get(kept)).toMatchObject({ status: 'failed' });
  const stored = async () => (await database.predictions.get(kept))?.status;
  await expect.poll(stored).toBe('failed');
  // The other is given up just after it.
  await new Promise((resolve) => setTimeout(resolve, 500));
  retries.release();
  expect(await store.get(gone)).toBeUndefined();
  // A row that comes back under the id is not written over by what was given up.
  await database.predictions.add(newPrediction({ id: gone }));
  expect(await store.get(gone)).toMatchObject({ status: 'created' });
});

import { afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import type { ErrorCode, Prediction } from '../../lib/contract';
import { CurrentRun } from '../../lib/predictions/current-run';
import { KinoraDatabase } from '../../lib/predictions/database';
import { PredictionStore } from '../../lib/predictions/store';
import { cleanUp } from '../../lib/predictions/testing/clean-up';
import { newPrediction, resultOf, started } from '../../lib/predictions/testing/prediction';
import type { VideoFolder } from '../../lib/predictions/video-folder';
import { writeVideo } from '../../lib/predictions/videos';
import { readVideoMetadata } from '../../lib/video/metadata';
import { createRgbaWriter } from '../../lib/video/testing/i420';
import { videoName } from '../studio/result/video-name';
import { announceRuns } from './finished';
import { changeFinished, loadFinished } from './finished-settings';
import { getUnsaved } from './unsaved-videos';

let store: PredictionStore;
let run: CurrentRun;
let root: FileSystemDirectoryHandle;
let image: Blob;
let video: Blob;

beforeAll(async () => {
  const canvas = new OffscreenCanvas(40, 30);
  canvas.getContext('2d')?.fillRect(0, 0, 40, 30);
  image = await canvas.convertToBlob({ type: 'image/png' });
  const writer = await createRgbaWriter({ width: 64, height: 48, frames: 1, frameRate: 24 });
  await writer.add(new Uint8ClampedArray(64 * 48 * 4));
  video = await writer.finish();
});

beforeEach(async () => {
  store = new PredictionStore(new KinoraDatabase(`test-${crypto.randomUUID()}`));
  run = new CurrentRun(async () => {});
  announceRuns({ store, subscribe: run.subscribe, getSnapshot: run.getSnapshot });
  root = await navigator.storage.getDirectory();
});

afterEach(async () => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  await root.removeEntry('Films', { recursive: true }).catch(() => {});
  await cleanUp(store.database);
});

async function chooseFolder(): Promise<VideoFolder> {
  const folder = (await root.getDirectoryHandle('Films', { create: true })) as VideoFolder;
  await changeFinished(store.database, { folder });
  return folder;
}

async function names(folder: VideoFolder): Promise<string[]> {
  const found: string[] = [];
  for await (const name of folder.keys()) found.push(name);
  return found.sort();
}

/** A run of the studio, whose video is there at once. */
async function makeVideo(failure?: ErrorCode): Promise<Prediction> {
  const prediction = newPrediction();
  await store.create(prediction, { image, imageName: 'a.png', loras: [] });
  const work = async (_: AbortSignal, onStarted: () => void) => {
    onStarted();
    const at = new Date().toISOString();
    await store.dispatch(prediction.id, started);
    await writeVideo(`${prediction.id}.mp4`, video);
    if (!failure) {
      const result = resultOf(prediction.id);
      return store.dispatch(prediction.id, { type: 'completed', at, result });
    }
    const error = { code: failure, message: 'It failed.', remedy: 'Try again.' };
    return store.dispatch(prediction.id, { type: 'failed', at, error });
  };
  const { ended } = await run.begin(prediction, null, work);
  return ended;
}

function nameOf(row: Prediction): string {
  if (row.status !== 'completed') throw new Error(`It is ${row.status}.`);
  return videoName(row);
}

test('nothing is announced until it is asked for, and a change keeps the rest', async () => {
  const initial = { notification: false, sound: false, folder: null, imageInFile: true };
  expect(await loadFinished(store.database)).toEqual(initial);
  await changeFinished(store.database, { sound: true });
  await changeFinished(store.database, { notification: true });
  expect(await loadFinished(store.database)).toEqual({
    ...initial,
    notification: true,
    sound: true,
  });
});

test('finished videos are saved into the folder, which lasts; failed ones are not', async () => {
  const folder = await chooseFolder();
  const stored = (await loadFinished(store.database)).folder;
  expect(await stored?.isSameEntry(folder)).toBe(true);
  const [first, second] = [await makeVideo(), await makeVideo()];
  await makeVideo('LATENTS_NOT_FINITE');
  await expect.poll(() => names(folder)).toEqual([nameOf(first), nameOf(second)].sort());
  const tagsOf = async (row: Prediction) =>
    readVideoMetadata(await (await folder.getFileHandle(nameOf(row))).getFile());
  const { id, prompt, start_image } = await tagsOf(first);
  expect([id, prompt]).toEqual([first.id, 'a boat']);
  expect(start_image).toMatch(/^\/9j\//); // a JPEG in base64
  await changeFinished(store.database, { imageInFile: false });
  const third = await makeVideo();
  await expect.poll(() => names(folder)).toContain(nameOf(third));
  expect(await tagsOf(third)).toMatchObject({ id: third.id });
  expect(await tagsOf(third)).not.toHaveProperty('start_image');
});

test('what could not be saved is shown, and saved with the next video', async () => {
  const folder = await chooseFolder();
  await root.removeEntry('Films', { recursive: true });
  const lost = await makeVideo();
  await expect.poll(() => getUnsaved()?.ids).toEqual([lost.id]);
  expect(getUnsaved()?.error.message).toBe('The folder “Films” does not exist any more.');
  expect(await names(await chooseFolder())).toEqual([]);
  const next = await makeVideo();
  await expect.poll(() => getUnsaved()).toBeNull();
  expect(await names(folder)).toEqual([nameOf(lost), nameOf(next)].sort());
});

test('a notification tells how a run ended, unless the user ended it or looks at the page', async () => {
  const shown: string[] = [];
  vi.stubGlobal(
    'Notification',
    class {
      static permission = 'granted';
      constructor(title: string) {
        shown.push(title);
      }
    },
  );
  const focus = vi.spyOn(document, 'hasFocus').mockReturnValue(true);
  await changeFinished(store.database, { notification: true });
  await makeVideo();
  await expect.poll(() => focus.mock.calls.length).toBe(1);
  focus.mockReturnValue(false);
  await makeVideo('CANCELLED');
  await makeVideo('LATENTS_NOT_FINITE');
  await makeVideo();
  await expect.poll(() => shown).toEqual(['It failed.', 'Your video is finished.']);
});

import { afterEach, expect, test } from 'vitest';
import { cdp } from 'vitest/browser';
import { withMoveOfWebKit } from '../contract/testing/webkit';
import { listVideos, ownerOf, readVideo, removeVideo, writeVideo } from './videos';

const file = 'videos-test.mp4';

afterEach(() => removeVideo(file));

function bytes(length: number, seed: number): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length }, (_, index) => (index * 31 + seed) % 251);
}

async function stored(): Promise<Uint8Array> {
  return new Uint8Array(await (await readVideo(file)).arrayBuffer());
}

test('a written video is read back as an MP4 file of the same name', async () => {
  await writeVideo(file, new Blob([bytes(300_000, 1)]));
  const video = await readVideo(file);
  expect([video.name, video.type, video.size]).toEqual([file, 'video/mp4', 300_000]);
  expect(await stored()).toEqual(bytes(300_000, 1));
  expect(await listVideos()).toContain(file);
  expect(await listVideos()).not.toContain(`${file}.part`);
});

test('writing again replaces the video, a shorter one too', async () => {
  await writeVideo(file, new Blob([bytes(5000, 1)]));
  await writeVideo(file, new Blob([bytes(20, 2)]));
  expect(await stored()).toEqual(bytes(20, 2));
});

test('a failed write leaves no unfinished file and does not change the existing video', async () => {
  await writeVideo(file, new Blob([bytes(1000, 3)]));
  const broken = new Blob([bytes(1000, 4)]);
  broken.stream = () =>
    new ReadableStream({
      pull(controller) {
        controller.enqueue(bytes(10, 4));
        controller.error(new DOMException('The disk is full.', 'QuotaExceededError'));
      },
    });
  await expect(writeVideo(file, broken)).rejects.toMatchObject({ code: 'STORAGE_FULL' });
  expect(await stored()).toEqual(bytes(1000, 3));
  expect(await listVideos()).not.toContain(`${file}.part`);
});

test('a full disk is STORAGE_FULL and leaves nothing', async () => {
  const { usage = 0 } = await navigator.storage.estimate();
  const session = cdp();
  await session.send('Storage.overrideQuotaForOrigin', {
    origin: location.origin,
    quotaSize: usage + 500_000,
  });
  try {
    const large = new Blob([new Uint8Array(20_000_000)]);
    await expect(writeVideo(file, large)).rejects.toMatchObject({ code: 'STORAGE_FULL' });
    expect((await listVideos()).filter((name) => ownerOf(name) === ownerOf(file))).toEqual([]);
  } finally {
    await session.send('Storage.overrideQuotaForOrigin', { origin: location.origin });
  }
  await writeVideo(file, new Blob([bytes(10, 5)]));
  expect(await stored()).toEqual(bytes(10, 5));
});

test('reading a missing video rejects; removing it does not', async () => {
  await removeVideo(file);
  await expect(readVideo(file)).rejects.toMatchObject({
    code: 'FILE_UNREADABLE',
    message: expect.stringContaining(file),
  });
});

test('WebKit moves a file only with folder and name: the video is written, and replaced', async () => {
  withMoveOfWebKit();
  await writeVideo(file, new Blob([bytes(5000, 1)]));
  await writeVideo(file, new Blob([bytes(20, 2)]));
  expect(await stored()).toEqual(bytes(20, 2));
  expect(await listVideos()).not.toContain(`${file}.part`);
});

import { beforeEach, expect, test } from 'vitest';
import { mayWrite, saveInto, type VideoFolder } from './video-folder';

/** A folder of the origin private file system: the same interface, without the user's permission. */
let folder: VideoFolder;

beforeEach(async () => {
  const root = await navigator.storage.getDirectory();
  await root.removeEntry('Films', { recursive: true }).catch(() => {});
  folder = (await root.getDirectoryHandle('Films', { create: true })) as VideoFolder;
});

async function content(): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for await (const [name, handle] of folder.entries()) {
    found[name] = handle.kind === 'file' ? await (await handle.getFile()).text() : handle.kind;
  }
  return found;
}

test('writes a video, and replaces one of the same name', async () => {
  expect(await mayWrite(folder)).toBe(true);
  await saveInto(folder, 'a.mp4', new Blob(['first, longer']));
  await saveInto(folder, 'b.mp4', new Blob(['other']));
  await saveInto(folder, 'a.mp4', new Blob(['second']));
  expect(await content()).toEqual({ 'a.mp4': 'second', 'b.mp4': 'other' });
});

test('a file that cannot be written leaves nothing, and the one before as it was', async () => {
  await saveInto(folder, 'a.mp4', new Blob(['first']));
  const broken = new Blob();
  broken.stream = () =>
    new ReadableStream({
      start(controller) {
        controller.enqueue(new Uint8Array(10));
        controller.error(new DOMException('The disk is full.', 'QuotaExceededError'));
      },
    });
  for (const name of ['a.mp4', 'new.mp4']) {
    await expect(saveInto(folder, name, broken)).rejects.toMatchObject({
      code: 'STORAGE_FULL',
      message: 'The disk with the folder “Films” is full.',
    });
  }
  expect(await content()).toEqual({ 'a.mp4': 'first' });
});

test('a folder that was deleted, and a name that is taken by a folder, say so', async () => {
  await folder.getDirectoryHandle('a.mp4', { create: true });
  await expect(saveInto(folder, 'a.mp4', new Blob(['x']))).rejects.toMatchObject({
    code: 'FILE_UNWRITABLE',
    message: expect.stringMatching(/^No file can be written into “Films”: /),
  });
  expect(await content()).toEqual({ 'a.mp4': 'directory' });
  const root = await navigator.storage.getDirectory();
  await root.removeEntry('Films', { recursive: true });
  await expect(saveInto(folder, 'b.mp4', new Blob(['x']))).rejects.toMatchObject({
    code: 'FILE_UNWRITABLE',
    message: 'The folder “Films” does not exist any more.',
  });
});

import { afterEach, expect, test } from 'vitest';
import { withMoveOfWebKit } from '../../contract/testing/webkit';
import { openModelStore } from './opfs';

const model = 'opfs-test';

async function folder() {
  return (await openModelStore()).folder(model);
}
afterEach(async () => (await folder()).clear());

test('a text that many write at once is one of theirs, and each reader finds it whole', async () => {
  const store = await folder();
  const texts = Array.from({ length: 24 }, (_, i) => `${i}:`.padEnd(50_000, 'x'));
  await store.writeText('note.json', 'first');
  const writes = texts.map((text) => store.writeText('note.json', text));
  const reads = texts.map(async (_, i) => {
    await writes[i - 1];
    return store.readText('note.json');
  });
  await Promise.all(writes);
  for (const text of await Promise.all(reads)) {
    expect(['first', ...texts].includes(text ?? '')).toBe(true);
  }
  expect(texts).toContain(await store.readText('note.json'));
  expect(await store.list()).toEqual(['note.json']);
});

test('a file that goes or changes while it is open is named', async () => {
  const store = await folder();
  await store.writeText('gone.json', 'text');
  await store.writeText('other.json', 'text');
  const [gone, other] = [await store.open('gone.json'), await store.open('other.json')];
  await store.remove('gone.json');
  await store.writeText('other.json', 'another text');
  const name = (file: string) => expect.stringContaining(`models/${model}/${file}`);
  await expect(gone?.read(0, 4)).rejects.toMatchObject({
    code: 'MODEL_FILE_MISSING',
    message: name('gone.json'),
  });
  await expect(other?.read(0, 4)).rejects.toMatchObject({
    code: expect.stringMatching(/^(FILE_UNREADABLE|MODEL_FILE_MISSING)$/),
    message: name('other.json'),
  });
  expect(await store.readText('gone.json')).toBeNull();
});

test('WebKit moves a file only with folder and name: a text is written, and replaced', async () => {
  withMoveOfWebKit();
  const store = await folder();
  await store.writeText('note.json', 'a longer text');
  await store.writeText('note.json', 'text');
  expect(await store.readText('note.json')).toBe('text');
  expect(await store.list()).toEqual(['note.json']);
});

test('a browser without sync access handles, as every page is, says so', async () => {
  await expect((await folder()).write('lora.safetensors')).rejects.toMatchObject({
    code: 'STORAGE_MISSING',
    message: /createSyncAccessHandle/,
  });
});

test('a browser without a private file system says so', async () => {
  const { prototype } = StorageManager;
  const original = Object.getOwnPropertyDescriptor(prototype, 'getDirectory');
  const store = await folder();
  try {
    Reflect.deleteProperty(prototype, 'getDirectory');
    await expect(store.writeText('note.json', 'text')).rejects.toMatchObject({
      code: 'STORAGE_MISSING',
      message: /no private file storage/,
    });
  } finally {
    Object.defineProperty(prototype, 'getDirectory', original ?? {});
  }
});

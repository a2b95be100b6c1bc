/** @module-tag full */
import { expect, test } from 'vitest';
import { type StoreFolder, type StoreWriter, writeError } from '../weights/store';
import { diskStore } from '../weights/store/testing/disk';
import { libraryTests, modelOf, partOf } from './testing/library';

const now = libraryTests();

/** A folder on a disk of which only so many bytes are free. */
class SmallDisk {
  written = 0;

  constructor(public space: number) {}

  limit(folder: StoreFolder): StoreFolder {
    return {
      ...folder,
      folder: (name) => this.limit(folder.folder(name)),
      writeText: async (name, text) => {
        if (this.written + text.length > this.space) throw full();
        await folder.writeText(name, text);
      },
      write: async (name) => this.#limitWriter(await folder.write(name)),
    };
  }

  #limitWriter(writer: StoreWriter): StoreWriter {
    return {
      get size() {
        return writer.size;
      },
      write: async (at, bytes) => {
        const grown = Math.max(0, at + bytes.length - writer.size);
        if (this.written + grown > this.space) {
          throw full();
        }
        await writer.write(at, bytes);
        this.written += grown;
      },
      truncate: (size) => writer.truncate(size),
      flush: () => writer.flush(),
      close: () => writer.close(),
    };
  }
}

function full(): Error {
  return writeError(Object.assign(new Error('no space left'), { code: 'ENOSPC' }));
}

test('a storage that fills up pauses all that waits; with more space, it goes on', async () => {
  const disk = new SmallDisk(Number.POSITIVE_INFINITY);
  const library = await now().openModelTab({
    models: disk.limit(diskStore(`${now().root}/models`)),
  });
  // Space for the configuration and for half of the transformer.
  const plan = await library.planDownload('golden', 'int8');
  const sizes = new Map(plan.parts.map(({ component, bytesTotal }) => [component, bytesTotal]));
  const half = (sizes.get('configuration') ?? 0) + (sizes.get('transformer') ?? 0) / 2;
  disk.space = disk.written + half + 200_000;
  await library.download('golden', 'int8');

  const stopped = await partOf(library, 'transformer');
  expect(stopped).toMatchObject({
    status: 'paused',
    pausedBy: 'storage',
    error: { code: 'STORAGE_FULL', remedy: expect.stringContaining('Free disk space') },
  });
  for (const component of ['text_encoder', 'vae', 'tiny_decoder']) {
    expect(await partOf(library, component)).toMatchObject({
      status: 'paused',
      pausedBy: 'storage',
    });
  }
  expect((await partOf(library, 'configuration')).status).toBe('complete');

  disk.space = Number.POSITIVE_INFINITY;
  await library.resume('golden');
  expect((await modelOf(library)).ready).toBe(true);
  // Only the unit that did not fit is fetched again.
  expect(now().served('text_encoder').bytesTwice).toBe(0);
  expect(now().served('vae').bytesTwice).toBe(0);
});

test('in a full storage a model can still be cancelled and deleted', async () => {
  const disk = new SmallDisk(Number.POSITIVE_INFINITY);
  const library = await now().openModelTab({
    models: disk.limit(diskStore(`${now().root}/models`)),
  });
  await library.download('golden', 'int8');
  await library.download('golden', 'int4');
  disk.space = 0;
  await library.cancel('golden');
  await library.deleteModel('golden');
  expect((await modelOf(library)).stored).toEqual([]);
  await library.forgetModel('golden');
  expect((await library.snapshot()).models).toHaveLength(2);
});

test('another precision replaces what differs, and keeps what serves under both', async () => {
  const library = await now().openModelTab();
  await library.download('golden', 'int8');
  const before = await modelOf(library);
  now().hub.forget();

  await library.download('golden', 'int4');
  const after = await modelOf(library);
  expect(after).toMatchObject({ ready: true, precision: 'int4' });
  const stored = (entry: typeof after, component: string) =>
    entry.stored.find((one) => one.component === component);
  expect(stored(after, 'transformer')).toMatchObject({ precision: 'int4' });
  for (const component of ['text_encoder', 'vae', 'tiny_decoder', 'configuration']) {
    expect(stored(after, component), component).toEqual(stored(before, component));
  }
  expect(now().served('text_encoder').bytes).toBe(0);
  expect(await now().folder('golden/transformer').list()).not.toContain('journal');

  await library.download('golden', 'int8');
  expect(stored(await modelOf(library), 'transformer')).toMatchObject({ precision: 'int8' });
});

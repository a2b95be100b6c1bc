/** @module-tag full */
import { expect, test } from 'vitest';
import { goldenId, goldenRepository, goldenWeights } from '../models/wan/testing/golden-model';
import { createSourceHash } from '../weights/store/hashes';
import type { LibraryEnvironment } from './environment';
import type { Library } from './library';
import { libraryTests, local, modelOf, partOf, weightPath } from './testing/library';

const id = goldenId;
const unitLimit = 64 * 1024;
const now = libraryTests();

/** Small units, and something that happens as the hash takes the unit of this number, from 1. */
function atUnit(number: number, event: () => unknown): Partial<LibraryEnvironment> {
  const real = createSourceHash();
  let unit = 0;
  const startHash = () => ({
    hash: {
      start: async () => (await real).start(),
      resume: async (state: string) => (await real).resume(state),
      async update(bytes: Uint8Array) {
        const own = bytes.slice();
        await (await real).update(own);
        if (++unit === number) event();
      },
      state: async () => (await real).state(),
      digest: async () => (await real).digest(),
    },
    close: () => undefined,
  });
  return { unitLimit, startHash };
}

/** A library with the golden model listed, in which that happens. */
async function libraryAt(
  number: number,
  event: (library: Library) => unknown,
  overrides: Partial<LibraryEnvironment> = {},
): Promise<Library> {
  const library: Library = now().openTab({
    ...atUnit(number, () => event(library)),
    ...overrides,
  });
  await library.addModel({ address: goldenRepository });
  return library;
}

/** Which unit is in the middle of the VAE, after the units of the parts before it. */
const middleOfVae = 20;

test('a download that stopped in the middle of a part goes on at its next unit', async () => {
  const library = await libraryAt(middleOfVae, (one) => one.pause(id));
  await library.download(id, 'int8');
  const paused = await partOf(library, 'vae');
  expect(paused).toMatchObject({ status: 'paused', pausedBy: 'user' });
  const { bytesDone } = paused;
  expect(bytesDone).toBeGreaterThan(4 * unitLimit);

  const reloaded = now().openTab({ unitLimit });
  expect(await partOf(reloaded, 'vae')).toMatchObject({ pausedBy: 'interrupted', bytesDone });
  now().hub.forget();
  await reloaded.resume(id);
  expect((await modelOf(reloaded)).ready).toBe(true);
  const stored = now().hub.requests.filter(
    ({ path, host }) => host === 'storage' && path.endsWith(weightPath('vae')),
  );
  // Several ranges are on their way at once, and arrive in any order.
  expect(Math.min(...stored.map(({ start }) => start))).toBe(bytesDone);
  expect(now().served('vae').bytes).toBe((paused.bytesTotal ?? 0) - bytesDone);
  expect(now().served('transformer').bytes).toBe(0);
  expect((await partOf(reloaded, 'vae')).notice).toBeUndefined();
});

test('what was begun in one precision is no progress in another', async () => {
  const library = await libraryAt(2, (one) => one.pause(id));
  await library.download(id, 'int8');
  const transformer = async (precision: 'int8' | 'int4') => {
    const { parts } = await library.planDownload(id, precision);
    return parts.find(({ component }) => component === 'transformer');
  };
  const same = await transformer('int8');
  expect(same?.bytesLeft).toBeLessThan(same?.bytesTotal ?? 0);
  const other = await transformer('int4');
  expect(other?.bytesLeft).toBe(other?.bytesTotal);
});

test('paused and then cancelled at once, it leaves nothing, and can begin again', async () => {
  let cancelled: Promise<void> | undefined;
  const library = await libraryAt(middleOfVae, (one) => {
    void one.pause(id);
    cancelled = one.cancel(id);
  });
  await library.download(id, 'int8');
  await cancelled;
  expect(await partOf(library, 'vae')).toMatchObject({ status: 'absent' });
  expect(await now().folder(`${id}/vae`).list()).toEqual([]);
  const again = library.download(id, 'int8');
  const twice = library.download(id, 'int8');
  await Promise.all([again, twice]);
  expect((await modelOf(library)).ready).toBe(true);
});

test('cancelled while a header is awaited, it ends at once', async () => {
  const library = await now().openModelTab();
  await now().folder(`${id}/vae`).clear();
  const fault = { kind: 'stall', afterBytes: 4 } as const;
  let struck: () => void = () => undefined;
  const awaited = new Promise<void>((resolve) => {
    struck = resolve;
  });
  const path = weightPath('vae');
  now().hub.fail({ fault, path, host: 'storage', times: 9, onStrike: struck });
  const downloading = library.download(id, 'int8');
  await awaited;
  await library.cancel(id);
  await downloading;
  expect(await now().folder(`${id}/vae`).list()).toEqual([]);
});

test('an announced checksum that is wrong costs one more attempt, and fails then', async () => {
  const library = await libraryAt(0, () => undefined);
  const files = now().hub.repositories.list(goldenRepository);
  const vae = files?.get(weightPath('vae'));
  if (!vae) throw new Error('There is no VAE.');
  const bytes = vae.bytes.slice();
  bytes[bytes.length - 2] = (bytes.at(-2) ?? 0) ^ 1;
  Object.assign(vae, { bytes });
  await expect(library.download(id, 'int8')).rejects.toMatchObject({ code: 'DOWNLOAD_CORRUPT' });
  expect(await partOf(library, 'vae')).toMatchObject({
    status: 'failed',
    error: { code: 'DOWNLOAD_CORRUPT', message: expect.stringContaining('was announced') },
  });
  expect(Math.floor(now().served('vae').bytes / bytes.length)).toBe(2);
});

test('a local import goes on with its own file, and never fetches it instead', async () => {
  const vae = await local(goldenWeights.vae, 'my/vae.safetensors');
  const library = await libraryAt(5, (one) => one.pause(id));
  now().hub.forget();
  await library.importFiles(id, 'int8', [vae]);
  const { bytesDone } = await partOf(library, 'vae');
  expect(bytesDone).toBeGreaterThan(0);

  const reloaded = now().openTab(atUnit(5, () => reloaded.pause(id)));
  await expect(reloaded.resume(id)).rejects.toMatchObject({
    code: 'FILE_UNREADABLE',
    message: expect.stringContaining('"vae.safetensors"'),
    remedy: expect.stringContaining('again'),
  });
  expect(await partOf(reloaded, 'vae')).toMatchObject({ status: 'paused', bytesDone });
  // The same file, picked by itself this time, and paused once more.
  const again = { ...vae, path: 'vae.safetensors' };
  await reloaded.importFiles(id, 'int8', [again]);
  const later = await partOf(reloaded, 'vae');
  expect(later.bytesDone).toBeGreaterThan(bytesDone);
  // This tab has the file still.
  await reloaded.resume(id);
  expect(await partOf(reloaded, 'vae')).toMatchObject({ status: 'complete' });
  expect((await partOf(reloaded, 'vae')).notice).toBeUndefined();
  expect(now().served('vae').bytes).toBe(0);
});

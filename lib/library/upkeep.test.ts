/** @module-tag full */
import { openAsBlob } from 'node:fs';
import { appendFile, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  goldenBytes,
  goldenId,
  goldenRepository,
  goldenWeights,
} from '../models/wan/testing/golden-model';
import type { StoreFolder } from '../weights/store';
import { diskStore } from '../weights/store/testing/disk';
import { goldens, safetensorsBytes } from '../weights/testing/files';
import { libraryTests, local, modelOf, until, untilVaeDownloads } from './testing/library';

const id = goldenId;
const now = libraryTests();

/** A library with the whole golden model. */
async function complete(...overrides: Parameters<ReturnType<typeof now>['openTab']>) {
  const library = await now().openModelTab(...overrides);
  await library.download(id, 'int8');
  return library;
}

/** A folder in which something happens before each file is opened. */
function watched(folder: StoreFolder, onOpen: (name: string) => void): StoreFolder {
  return {
    ...folder,
    folder: (name) => watched(folder.folder(name), onOpen),
    open: async (name) => {
      onOpen(name);
      return folder.open(name);
    },
  };
}

describe('a complete model', () => {
  test('stays as it is when another precision cannot be fetched', async () => {
    const library = await complete({
      online: (_, signal) =>
        new Promise((resolve) => signal.addEventListener('abort', () => resolve())),
    });
    const before = (await modelOf(library)).stored;
    now().hub.fail({ fault: { kind: 'reset' }, times: 1_000_000 });
    const switching = library.download(id, 'int4');
    await until(library, ({ models }) =>
      models.some(({ parts }) => parts.some(({ pausedBy }) => pausedBy === 'network')),
    );
    await library.cancel(id);
    await switching;
    const after = await modelOf(library);
    expect(after).toMatchObject({ ready: true, precision: 'int8' });
    expect(after.stored).toEqual(expect.arrayContaining([...before]));
    expect(after.parts.every(({ status }) => status === 'complete')).toBe(true);
    await library.verify(id);
    expect((await modelOf(library)).ready).toBe(true);
  });

  test('stays as it is when a file that is to replace a part is not whole', async () => {
    const library = await complete();
    const before = (await modelOf(library)).stored;
    const one = { dtype: 'F32', shape: [32], data: new Float32Array(32) } as const;
    const shard = safetensorsBytes({ 'blocks.0.attn1.norm_q.weight': one });
    const file = new File([new Uint8Array(shard)], 'shard.safetensors');
    const files = [{ path: 'shard.safetensors', file }];
    await expect(library.importFiles(id, 'int8', files)).rejects.toMatchObject({
      code: expect.stringMatching(/^TENSOR_/),
    });
    const after = await modelOf(library);
    expect(after.ready).toBe(true);
    expect(after.stored).toEqual(expect.arrayContaining([...before]));
    await library.verify(id);
    expect((await modelOf(library)).ready).toBe(true);
  });

  test('frees the space of what is replaced, and is planned as large as it becomes', async () => {
    const library = await now().openModelTab();
    const { store } = await library.planDownload(id, 'int8');
    await library.download(id, 'int8');
    const { stored } = await modelOf(library);
    const bytes = stored.reduce((sum, { bytesStored }) => sum + bytesStored, 0);
    expect(Math.abs(store - bytes) / bytes).toBeLessThan(0.01);
    const replaced = stored.find(({ component }) => component === 'transformer')?.bytesStored ?? 0;
    const plan = await library.planDownload(id, 'int4');
    expect(plan.left).toBe(plan.storage.quota - plan.storage.usage - plan.store + replaced);
  });
});

describe('a verification', () => {
  test('that breaks off leaves the part as it was', async () => {
    let broken = false;
    const library = await complete({
      models: watched(diskStore(`${now().root}/models`), (name) => {
        if (broken && name.endsWith('.bin')) throw new Error('The disk does not answer.');
      }),
    });
    broken = true;
    await expect(library.verify(id)).rejects.toThrow('does not answer');
    expect((await modelOf(library)).parts.every(({ status }) => status === 'complete')).toBe(true);
  });

  test('can be cancelled', async () => {
    let verifying = false;
    const cancelled: Promise<void>[] = [];
    const library = await complete({
      models: watched(diskStore(`${now().root}/models`), (name) => {
        if (verifying && name.endsWith('.bin')) cancelled.push(library.cancel(id));
      }),
    });
    const before = (await modelOf(library)).stored;
    verifying = true;
    await library.verify(id);
    await Promise.all(cancelled);
    const { stored, parts } = await modelOf(library);
    expect(parts.every(({ status }) => status === 'complete')).toBe(true);
    const untouched = stored.filter(({ component, verifiedAt }) =>
      before.some((one) => one.component === component && one.verifiedAt === verifiedAt),
    );
    expect(untouched.length).toBeGreaterThan(0);
  });
});

describe('what the user has chosen', () => {
  const read = async () => JSON.parse(await readFile(`${now().root}/models/library.json`, 'utf8'));

  test('by two tabs at once is kept of both', async () => {
    const folder = diskStore(`${now().root}/models`);
    const slow: StoreFolder = {
      ...folder,
      async readText(name) {
        const text = await folder.readText(name);
        await new Promise((resolve) => setTimeout(resolve, 20));
        return text;
      },
    };
    const [first, second] = [now().openTab({ models: slow }), now().openTab({ models: slow })];
    await first.addModel({ address: goldenRepository });
    await second.snapshot();
    const hub = now().hub.url;
    const downloading = first.download(id, 'int8');
    await Promise.all([second.setHub(hub), downloading]);
    expect(await read()).toMatchObject({ hub, precision: { [id]: 'int8' } });
  });

  test('is gone with a model that is forgotten in the middle', async () => {
    const library = await now().openModelTab();
    now().slowVae();
    const downloading = library.download(id, 'int8');
    await untilVaeDownloads(library);
    await library.pause(id);
    await downloading;
    expect((await read()).wanted[id]).toHaveProperty('vae');
    await library.forgetModel(id);
    expect(await read()).toMatchObject({ wanted: {}, precision: {} });
  });
});

test('a local file that is changed while it is read is named', async () => {
  const library = await now().openModelTab();
  const onDisk = path.join(now().root, 'mine.safetensors');
  await writeFile(onDisk, await readFile(goldens + goldenWeights.vae));
  const file = new File([await openAsBlob(onDisk)], 'mine.safetensors');
  await appendFile(onDisk, 'more');
  const files = [{ path: 'mine.safetensors', file }];
  await expect(library.importFiles(id, 'int8', files)).rejects.toMatchObject({
    code: 'FILE_UNREADABLE',
    message: expect.stringContaining('mine.safetensors'),
  });
});

test('what a model does not need is no part of it, and does no harm in a picked folder', async () => {
  const { repositories } = now().hub;
  const text = repositories.list(goldenRepository)?.get('kinora.json')?.bytes;
  const published = JSON.parse(new TextDecoder().decode(text));
  for (const source of published.sources) source.optional = source.component === 'tiny_decoder';
  repositories.put(goldenRepository, 'kinora.json', JSON.stringify(published));
  const library = await now().openModelTab();
  const { manifest, parts } = await modelOf(library);
  expect(manifest.sources.map(({ component }) => component)).toContain('tiny_decoder');
  expect(parts.map(({ component }) => component)).not.toContain('tiny_decoder');
  const files = [await local(goldenWeights.tiny_decoder, 'my/taew2_2.safetensors')];
  await expect(library.importFiles(id, 'int8', files)).rejects.toMatchObject({
    code: 'MODEL_WRONG_KIND',
  });
});

test('a LoRA that is deleted on its way is cancelled, and leaves nothing', async () => {
  const library = now().openTab();
  const bytes = await goldenBytes('loras/b_lightx2v_diff_b.safetensors');
  now().hub.repositories.put('kinora/slow', 'slow.safetensors', bytes);
  const slow = { kind: 'slow', pieceBytes: 1024, pauseMs: 50 } as const;
  now().hub.fail({ fault: slow, path: 'slow.safetensors', host: 'storage', skip: 2, times: 9 });
  const adding = library.addLora({ address: 'kinora/slow' });
  const refused = expect(adding).rejects.toMatchObject({ code: 'CANCELLED' });
  await until(library, ({ loraDownloads }) => loraDownloads.length > 0);
  await library.deleteLora('slow.safetensors');
  await refused;
  expect((await library.snapshot()).loraDownloads).toEqual([]);
  expect(await diskStore(`${now().root}/loras`).list()).toEqual([]);
});

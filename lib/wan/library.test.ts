import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  type GoldenWeights,
  goldenId,
  goldenPath,
  goldenRepository,
  goldenWeights,
  publishGoldenModel,
} from '../../e2e/hub/golden-model';
import { type LocalHub, startHub } from '../../e2e/hub/server';
import {
  type LibrarySnapshot,
  type LocalFile,
  type PartState,
  parseManifest,
  type StorageReport,
} from '../contract';
import type { LibraryEnvironment, LibraryMessage } from '../weights/library/environment';
import { Library, modelLock } from '../weights/library/library';
import { diskStore } from '../weights/store/testing/disk';
import { diskFolder, goldens } from '../weights/testing/files';
import { wanArchitecture } from './install';
import { openStoredModel } from './model';

const publicModels = fileURLToPath(new URL('../../public/models/', import.meta.url));
const repository = goldenRepository;
const id = goldenId;
const weights = goldenWeights;

let hub: LocalHub;
let root: string;
/** Locks and listeners of all tabs of a test. */
let held: Set<string>;
let released: (() => void)[];
let tabs: ((message: LibraryMessage) => void)[];

beforeAll(async () => {
  hub = await startHub();
});
afterAll(() => hub.close());

beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'kinora-'));
  held = new Set();
  released = [];
  tabs = [];
  await publishGoldenModel(hub);
});
afterEach(async () => {
  hub.heal();
  hub.forget();
  await rm(root, { recursive: true, force: true });
});

function weightPath(component: string): string {
  return goldenPath(component as GoldenWeights);
}

/** A tab: its own library over the same disk. */
function openTab(overrides: Partial<LibraryEnvironment> = {}): Library {
  let hear: ((message: LibraryMessage) => void) | undefined;
  const environment: LibraryEnvironment = {
    architecture: wanArchitecture,
    models: diskStore(`${root}/models`),
    loras: diskStore(`${root}/loras`),
    async listed() {
      return Promise.all(
        ['tiny', 'wan2.2-ti2v-5b'].map(async (name) => {
          const text = await readFile(`${publicModels}${name}.json`, 'utf8');
          return {
            manifest: parseManifest(JSON.parse(text)),
            base: diskFolder(publicModels + name),
          };
        }),
      );
    },
    storage: async (): Promise<StorageReport> => ({ usage: 0, quota: 2 ** 40, persistent: true }),
    async tryLock(name, work) {
      if (held.has(name)) return null;
      held.add(name);
      try {
        return { value: await work() };
      } finally {
        held.delete(name);
        for (const resolve of released.splice(0)) resolve();
      }
    },
    whenFree: (name) =>
      held.has(name) ? new Promise((resolve) => released.push(resolve)) : Promise.resolve(),
    channel: {
      post: (message) => {
        for (const tab of tabs) if (tab !== hear) queueMicrotask(() => tab(message));
      },
      listen: (listener) => {
        hear = listener;
        tabs.push(listener);
      },
    },
    online: async () => undefined,
    hubOptions: { policy: { firstDelayMs: 1, longestDelayMs: 2, stallMs: 500, attempts: 4 } },
    defaultHub: hub.url,
    ...overrides,
  };
  return new Library(environment);
}

async function model(library: Library, modelId = id) {
  const { models } = await library.snapshot();
  const entry = models.find(({ manifest }) => manifest.id === modelId);
  if (!entry) throw new Error(`There is no model ${modelId}.`);
  return entry;
}

async function part(library: Library, component: string): Promise<PartState> {
  const found = (await model(library)).parts.find((one) => one.component === component);
  if (!found) throw new Error(`There is no part ${component}.`);
  return found;
}

/** Waits for a snapshot in which something is so. */
async function until(library: Library, holds: (snapshot: LibrarySnapshot) => boolean) {
  await new Promise<void>((resolve, reject) => {
    library
      .subscribe((snapshot) => {
        if (holds(snapshot)) resolve();
      })
      .catch(reject);
  });
}

function served(component: string) {
  return hub.served(weightPath(component));
}

async function local(file: string, name = path.basename(file)): Promise<LocalFile> {
  const content = new Uint8Array(await readFile(goldens + file));
  return { path: name, file: new File([content], name) };
}

describe('a model of the hub', () => {
  test('is listed, planned, fetched once, converted, and can be opened', async () => {
    const library = openTab();
    const added = await library.addModel({ address: repository });
    expect(added).toMatchObject({ origin: 'added', ready: false, precision: null });
    expect(added.parts.map(({ status }) => status)).toEqual(Array(5).fill('absent'));
    expect(served('vae').bytes).toBe(0);

    const plan = await library.planDownload(id, 'int8');
    const vae = (await readFile(goldens + weights.vae)).length;
    expect(plan.parts.find(({ component }) => component === 'vae')).toMatchObject({
      bytesTotal: vae,
      bytesLeft: vae,
    });
    expect(plan.left).toBe(2 ** 40 - plan.store);

    await library.download(id, 'int8');
    const done = await model(library);
    expect(done).toMatchObject({ ready: true, precision: 'int8', elsewhere: false });
    expect(done.parts.every(({ status }) => status === 'complete')).toBe(true);
    expect(done.stored.find(({ component }) => component === 'transformer')).toMatchObject({
      sourceType: 'Q8_0',
      precision: 'int8',
      sources: [{ sha256: expect.stringMatching(/^[0-9a-f]{64}$/) }],
    });
    for (const component of Object.keys(weights)) {
      expect(served(component).bytesTwice).toBe(0);
    }
    await openStoredModel(done.manifest, diskStore(`${root}/models/${id}`));

    const later = await library.planDownload(id, 'int8');
    expect(later).toMatchObject({ download: 0, store: 0 });
    const before = hub.requests.length;
    await library.download(id, 'int8');
    expect(hub.requests).toHaveLength(before);
  });

  test('goes on where it stopped after cuts and a reload, without a byte twice', async () => {
    const library = openTab();
    await library.addModel({ address: repository });
    hub.fail({
      fault: { kind: 'cut', afterBytes: 300_000 },
      path: weightPath('vae'),
      host: 'storage',
      fromByte: 1,
    });
    hub.fail({
      fault: { kind: 'reset' },
      path: weightPath('transformer'),
      host: 'storage',
      times: 2,
    });
    await library.download(id, 'int8');
    expect((await model(library)).ready).toBe(true);
    expect(served('vae').bytesTwice).toBe(0);

    const reopened = openTab();
    expect((await model(reopened)).ready).toBe(true);
  });

  test('paused by the user stands still, resumes, and is shown so by the next tab', async () => {
    const library = openTab();
    await library.addModel({ address: repository });
    hub.fail({
      fault: { kind: 'slow', pieceBytes: 64 * 1024, pauseMs: 15 },
      path: weightPath('vae'),
      host: 'storage',
      fromByte: 1,
      times: 100,
    });
    const downloading = library.download(id, 'int8');
    await until(library, ({ models }) =>
      models.some(({ parts }) =>
        parts.some(({ component, status }) => component === 'vae' && status === 'downloading'),
      ),
    );
    await library.pause(id);
    await downloading;
    expect(await part(library, 'vae')).toMatchObject({ status: 'paused', pausedBy: 'user' });
    expect((await model(library)).ready).toBe(false);

    hub.heal();
    await library.resume(id);
    expect((await model(library)).ready).toBe(true);
  });

  test('cancelled leaves nothing that is not complete', async () => {
    const library = openTab();
    await library.addModel({ address: repository });
    hub.fail({
      fault: { kind: 'slow', pieceBytes: 64 * 1024, pauseMs: 15 },
      path: weightPath('vae'),
      host: 'storage',
      fromByte: 1,
      times: 100,
    });
    const downloading = library.download(id, 'int8');
    await until(library, ({ models }) =>
      models.some(({ parts }) =>
        parts.some(({ component, status }) => component === 'vae' && status === 'downloading'),
      ),
    );
    await library.cancel(id);
    await downloading;
    expect(await part(library, 'vae')).toMatchObject({ status: 'absent', bytesDone: 0 });
    expect(await part(library, 'transformer')).toMatchObject({ status: 'complete' });
    expect(await diskStore(`${root}/models/${id}/vae`).list()).toEqual([]);
  });

  test('waits out a hub that is away, and goes on by itself', async () => {
    let waits = 0;
    const library = openTab({
      online: async () => {
        waits++;
        hub.heal();
      },
    });
    await library.addModel({ address: repository });
    hub.fail({
      fault: { kind: 'reset' },
      path: weightPath('text_encoder'),
      host: 'storage',
      times: 1000,
    });
    await library.download(id, 'int8');
    expect(waits).toBe(1);
    expect((await model(library)).ready).toBe(true);
  });

  test('that was replaced on the hub in the middle starts over with the new file', async () => {
    const library = openTab();
    await library.addModel({ address: repository });
    const replacement = new Uint8Array(await readFile(goldens + weights.vae));
    // A bit of the last tensor: another file of the same size.
    replacement[replacement.length - 2] = (replacement.at(-2) ?? 0) ^ 1;
    hub.fail({
      fault: { kind: 'cut', afterBytes: 200_000 },
      path: weightPath('vae'),
      host: 'storage',
      fromByte: 1000,
      onStrike: () => hub.repositories.put(repository, weightPath('vae'), replacement),
    });
    await library.download(id, 'int8');
    const stored = (await model(library)).stored.find(({ component }) => component === 'vae');
    expect((await part(library, 'vae')).notice).toMatch(
      /was changed at its source\. It starts over/,
    );
    const { sha256 } = hub.repositories.list(repository)?.get(weightPath('vae')) ?? {};
    expect(stored?.sources[0]?.sha256).toBe(sha256);
  });

  test('of another model is refused by its header, before any weight is fetched', async () => {
    const library = openTab();
    await library.addModel({ address: repository });
    const lora = await readFile(`${goldens}loras/wrong_base_14b.safetensors`);
    hub.repositories.put(repository, weightPath('text_encoder'), lora);
    await expect(library.download(id, 'int8')).rejects.toMatchObject({
      code: 'MODEL_WRONG_KIND',
      message: expect.stringContaining('a LoRA'),
    });
    expect(await part(library, 'text_encoder')).toMatchObject({ status: 'failed' });
    expect(served('vae').bytes).toBeLessThan(100_000);
    expect(await part(library, 'transformer')).toMatchObject({ status: 'paused', bytesDone: 0 });
  });

  test('that does not fit is refused with numbers, before anything is fetched', async () => {
    const library = openTab({
      storage: async () => ({ usage: 9e6, quota: 1e7, persistent: false }),
    });
    await library.addModel({ address: repository });
    hub.forget();
    await expect(library.download(id, 'int8')).rejects.toMatchObject({
      code: 'STORAGE_FULL',
      message: expect.stringMatching(/needs .* MiB .* only .* MiB/),
    });
    expect(served('transformer').bytes).toBe(0);
  });

  test('is worked on by one tab only; the other shows it and can pause it', async () => {
    const [first, second] = [openTab(), openTab()];
    await first.addModel({ address: repository });
    await second.snapshot();
    hub.fail({
      fault: { kind: 'slow', pieceBytes: 64 * 1024, pauseMs: 15 },
      path: weightPath('vae'),
      host: 'storage',
      fromByte: 1,
      times: 100,
    });
    const downloading = first.download(id, 'int8');
    await until(second, ({ models }) =>
      models.some(
        ({ elsewhere, parts }) =>
          elsewhere &&
          parts.some(({ component, status }) => component === 'vae' && status === 'downloading'),
      ),
    );
    expect(held).toEqual(new Set([modelLock(id)]));
    await expect(second.download(id, 'int8')).rejects.toMatchObject({ code: 'MODEL_BUSY' });
    await expect(second.deleteModel(id)).rejects.toMatchObject({ code: 'MODEL_BUSY' });
    await second.pause(id);
    await downloading;
    expect(await part(first, 'vae')).toMatchObject({ status: 'paused', pausedBy: 'user' });
    await until(second, ({ models }) => models.every(({ elsewhere }) => !elsewhere));
    hub.heal();
    await second.resume(id);
    expect((await model(second)).ready).toBe(true);
    await until(first, ({ models }) =>
      models.some(({ manifest, ready }) => manifest.id === id && ready),
    );
  });

  test('is verified, found damaged, fetched again, deleted and forgotten', async () => {
    const library = openTab();
    await library.addModel({ address: repository });
    await library.download(id, 'int8');
    await library.verify(id);
    expect((await model(library)).ready).toBe(true);

    const folder = diskStore(`${root}/models/${id}/vae`);
    const pack = (await folder.list()).find((name) => name.endsWith('.bin')) ?? '';
    const writer = await folder.write(pack);
    await writer.write(5, new Uint8Array([1, 2, 3, 4]));
    await writer.close();
    await library.verify(id);
    expect(await part(library, 'vae')).toMatchObject({
      status: 'absent',
      error: { code: 'MODEL_FILE_INVALID' },
    });
    expect((await model(library)).ready).toBe(false);
    await library.download(id, 'int8');
    expect((await model(library)).ready).toBe(true);

    await library.deleteModel(id);
    expect((await model(library)).stored).toEqual([]);
    await library.forgetModel(id);
    expect((await library.snapshot()).models.map(({ manifest }) => manifest.id)).toEqual([
      'tiny',
      'wan2.2-ti2v-5b',
    ]);
    expect((await openTab().snapshot()).models).toHaveLength(2);
  });
});

describe('local files', () => {
  test('serve instead of the hub, whatever they are called', async () => {
    const library = openTab();
    await library.addModel({ address: repository });
    hub.forget();
    const files = await Promise.all([
      local(weights.transformer, 'a.gguf'),
      local(weights.text_encoder, 'b.gguf'),
      local(weights.vae, 'c.safetensors'),
      local(weights.tiny_decoder, 'd.safetensors'),
      ...wanArchitecture.configurationFiles.map((file) => local(`model/${file}`, `my/${file}`)),
    ]);
    await library.importFiles(id, 'int8', files);
    expect((await model(library)).ready).toBe(true);
    expect(served('transformer').bytes + served('vae').bytes).toBe(0);
  });

  test('that are no part of the model are named', async () => {
    const library = openTab();
    await library.addModel({ address: repository });
    const files = [await local('loras/a_peft.safetensors', 'mine.safetensors')];
    await expect(library.importFiles(id, 'int8', files)).rejects.toMatchObject({
      code: 'MODEL_WRONG_KIND',
      message: expect.stringContaining('mine.safetensors (a LoRA)'),
    });
  });
});

describe('adding a model', () => {
  test('of a diffusers repository takes its own parts', async () => {
    await hub.repositories.putFolder('kinora/diffusers', `${goldens}model`);
    const library = openTab();
    const { manifest } = await library.addModel({ address: 'kinora/diffusers' });
    expect(manifest).toMatchObject({ id: 'diffusers', name: 'diffusers' });
    const transformer = manifest.sources.find(({ component }) => component === 'transformer');
    expect(transformer?.files[0]?.path).toBe('transformer/diffusion_pytorch_model.safetensors');
    const again = await library.addModel({ address: 'kinora/diffusers' });
    expect(again.manifest.id).toBe('diffusers-2');
  });

  test('of a single file takes the other parts from the base model', async () => {
    const library = openTab();
    const address = `${repository}/${weightPath('transformer')}`;
    const { manifest } = await library.addModel({ address });
    expect(manifest.id).toBe('transformer-q8_0');
    const repositories = manifest.sources.map(({ component, files }) => [
      component,
      files[0]?.repository,
    ]);
    expect(repositories).toContainEqual(['transformer', repository]);
    expect(repositories).toContainEqual(['vae', 'Comfy-Org/Wan_2.2_ComfyUI_Repackaged']);
  });

  test('of what is none is refused with a reason', async () => {
    const library = openTab();
    hub.repositories.put(
      'kinora/lora',
      'a.safetensors',
      await readFile(`${goldens}loras/a_peft.safetensors`),
    );
    await expect(library.addModel({ address: 'kinora/lora' })).rejects.toMatchObject({
      code: 'MODEL_WRONG_KIND',
    });
    await expect(library.addModel({ address: 'kinora/none' })).rejects.toMatchObject({
      code: 'HUB_NOT_FOUND',
    });
    await expect(library.addModel({ address: 'nonsense' })).rejects.toMatchObject({
      code: 'ADDRESS_INVALID',
    });
  });
});

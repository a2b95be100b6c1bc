import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { modelFamilies } from '../models';
import { openStoredParts } from '../models/wan/parts';
import { goldenId, goldenRepository, goldenWeights } from '../models/wan/testing/golden-model';
import { modelLock } from '../weights/store';
import { goldens } from '../weights/testing/files';
import {
  libraryTests,
  local,
  modelOf,
  partOf,
  until,
  untilVaeDownloads,
  weightPath,
} from './testing/library';

const repository = goldenRepository;
const id = goldenId;
const weights = goldenWeights;
const now = libraryTests();

describe('a model of the hub', () => {
  test('is listed, planned, fetched once, converted, and can be opened', async () => {
    const library = now().openTab();
    const added = await library.addModel({ address: repository });
    expect(added).toMatchObject({ origin: 'added', ready: false, precision: null });
    expect(added.parts.map(({ status }) => status)).toEqual(Array(6).fill('absent'));
    // Its header, which is kept.
    expect(now().served('vae').bytes).toBeLessThan(100_000);

    const plan = await library.planDownload(id, 'int8');
    const vae = (await readFile(goldens + weights.vae)).length;
    expect(plan.parts.find(({ component }) => component === 'vae')).toMatchObject({
      bytesTotal: vae,
      bytesLeft: vae,
    });
    expect(plan.left).toBe(2 ** 40 - plan.store);

    await library.download(id, 'int8');
    const done = await modelOf(library);
    expect(done).toMatchObject({ ready: true, precision: 'int8', elsewhere: null });
    expect(done.parts.every(({ status }) => status === 'complete')).toBe(true);
    expect(done.stored.find(({ component }) => component === 'transformer')).toMatchObject({
      sourceType: 'Q8_0',
      precision: 'int8',
      sources: [{ sha256: expect.stringMatching(/^[0-9a-f]{64}$/) }],
    });
    for (const component of Object.keys(weights)) {
      expect(now().served(component).bytesTwice).toBe(0);
    }
    await openStoredParts(done.manifest, now().folder(id));

    const later = await library.planDownload(id, 'int8');
    expect(later).toMatchObject({ download: 0, store: 0 });
    const before = now().hub.requests.length;
    await library.download(id, 'int8');
    expect(now().hub.requests).toHaveLength(before);
  });

  test('cancelled leaves nothing that is not complete', async () => {
    const library = await now().openModelTab();
    now().slowVae();
    const downloading = library.download(id, 'int8');
    await untilVaeDownloads(library);
    await library.cancel(id);
    await downloading;
    expect(await partOf(library, 'vae')).toMatchObject({ status: 'absent', bytesDone: 0 });
    expect(await partOf(library, 'transformer')).toMatchObject({ status: 'complete' });
    expect(await now().folder(`${id}/vae`).list()).toEqual([]);
  });

  test('waits out a hub that is away, and goes on by itself', async () => {
    let waits = 0;
    const library = now().openTab({
      online: async () => {
        waits++;
        now().hub.heal();
      },
    });
    await library.addModel({ address: repository });
    now().hub.fail({
      fault: { kind: 'reset' },
      path: weightPath('text_encoder'),
      host: 'storage',
      times: 1000,
    });
    await library.download(id, 'int8');
    expect(waits).toBe(1);
    expect((await modelOf(library)).ready).toBe(true);
  });

  test('that was replaced on the hub in the middle starts over with the new file', async () => {
    const library = await now().openModelTab();
    const replacement = new Uint8Array(await readFile(goldens + weights.vae));
    // A bit of the last tensor: another file of the same size.
    replacement[replacement.length - 2] = (replacement.at(-2) ?? 0) ^ 1;
    now().hub.fail({
      fault: { kind: 'cut', afterBytes: 200_000 },
      path: weightPath('vae'),
      host: 'storage',
      fromByte: 1000,
      onStrike: () => now().hub.repositories.put(repository, weightPath('vae'), replacement),
    });
    await library.download(id, 'int8');
    const stored = (await modelOf(library)).stored.find(({ component }) => component === 'vae');
    expect((await partOf(library, 'vae')).notice).toMatch(
      /was changed at its source\. It starts over/,
    );
    const { sha256 } = now().hub.repositories.list(repository)?.get(weightPath('vae')) ?? {};
    expect(stored?.sources[0]?.sha256).toBe(sha256);
  });

  test('of another model is refused by its header, before any weight is fetched', async () => {
    const library = await now().openModelTab();
    const lora = await readFile(`${goldens}loras/wrong_base_14b.safetensors`);
    now().hub.repositories.put(repository, weightPath('text_encoder'), lora);
    await expect(library.download(id, 'int8')).rejects.toMatchObject({
      code: 'MODEL_WRONG_KIND',
      message: expect.stringContaining('a LoRA'),
    });
    expect(await partOf(library, 'text_encoder')).toMatchObject({ status: 'failed' });
    expect(now().served('vae').bytes).toBeLessThan(100_000);
    expect(await partOf(library, 'transformer')).toMatchObject({ status: 'paused', bytesDone: 0 });
  });

  test('that does not fit is refused with numbers, before anything is fetched', async () => {
    const library = await now().openModelTab({
      storage: async () => ({ usage: 9e6, quota: 1e7, persistent: false }),
    });
    now().hub.forget();
    await expect(library.download(id, 'int8')).rejects.toMatchObject({
      code: 'STORAGE_FULL',
      message: expect.stringMatching(/needs .* MiB .* only .* MiB/),
    });
    expect(now().served('transformer').bytes).toBe(0);
  });

  test('is worked on by one tab only; the other shows how far it is and changes nothing', {
    tags: ['full'],
  }, async () => {
    const [first, second] = [await now().openModelTab(), now().openTab()];
    await second.snapshot();
    now().slowVae();
    const downloading = first.download(id, 'int8');
    await until(second, ({ models }) =>
      models.some(({ elsewhere }) => elsewhere?.bytesTotal && elsewhere.bytesDone > 0),
    );
    expect(now().held).toEqual(new Set([modelLock(id)]));
    await expect(second.download(id, 'int8')).rejects.toMatchObject({ code: 'MODEL_BUSY' });
    await expect(second.deleteModel(id)).rejects.toMatchObject({ code: 'MODEL_BUSY' });
    await expect(second.pause(id)).rejects.toMatchObject({ code: 'MODEL_BUSY' });
    await expect(second.cancel(id)).rejects.toMatchObject({ code: 'MODEL_BUSY' });
    await untilVaeDownloads(first);
    await first.pause(id);
    await downloading;
    expect(await partOf(first, 'vae')).toMatchObject({ status: 'paused', pausedBy: 'user' });
    await until(second, ({ models }) => models.every(({ elsewhere }) => !elsewhere));
    now().hub.heal();
    await second.resume(id);
    expect((await modelOf(second)).ready).toBe(true);
    await until(first, ({ models }) =>
      models.some(({ manifest, ready }) => manifest.id === id && ready),
    );
  });

  test('is verified, found damaged, fetched again, deleted and forgotten', {
    tags: ['full'],
  }, async () => {
    const library = await now().openModelTab();
    await library.download(id, 'int8');
    await library.verify(id);
    expect((await modelOf(library)).ready).toBe(true);

    const folder = now().folder(`${id}/vae`);
    const pack = (await folder.list()).find((name) => name.endsWith('.bin')) ?? '';
    const writer = await folder.write(pack);
    await writer.write(5, new Uint8Array([1, 2, 3, 4]));
    await writer.close();
    await library.verify(id);
    expect(await partOf(library, 'vae')).toMatchObject({
      status: 'absent',
      error: { code: 'MODEL_FILE_INVALID' },
    });
    expect((await modelOf(library)).ready).toBe(false);
    await library.download(id, 'int8');
    expect((await modelOf(library)).ready).toBe(true);

    await library.deleteModel(id);
    expect((await modelOf(library)).stored).toEqual([]);
    await library.forgetModel(id);
    expect((await library.snapshot()).models.map(({ manifest }) => manifest.id)).toEqual([
      'tiny',
      'wan2.2-ti2v-5b',
    ]);
    expect((await now().openTab().snapshot()).models).toHaveLength(2);
  });
});

describe('local files', () => {
  test('serve instead of the hub, whatever they are called', { tags: ['full'] }, async () => {
    const library = await now().openModelTab();
    now().hub.forget();
    const files = await Promise.all([
      local(weights.transformer, 'a.gguf'),
      local(weights.text_encoder, 'b.gguf'),
      local(weights.vae, 'c.safetensors'),
      local(weights.tiny_decoder, 'd.safetensors'),
      ...modelFamilies.wan22.installation.configurationFiles.map((file) =>
        local(`model/${file}`, `my/${file}`),
      ),
    ]);
    await library.importFiles(id, 'int8', files);
    expect((await modelOf(library)).ready).toBe(true);
    expect(now().served('transformer').bytes + now().served('vae').bytes).toBe(0);
  });

  test('that are no part of the model are named', async () => {
    const library = await now().openModelTab();
    const files = [await local('loras/a_peft.safetensors', 'mine.safetensors')];
    await expect(library.importFiles(id, 'int8', files)).rejects.toMatchObject({
      code: 'MODEL_WRONG_KIND',
      message: expect.stringContaining('mine.safetensors (a LoRA)'),
    });
  });
});

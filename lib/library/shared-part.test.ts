/** @module-tag full */
import { expect, test } from 'vitest';
import { type LibrarySnapshot, progressOf } from '../contract';
import { testManifest } from '../contract/testing/manifest';
import { modelFamilies } from '../models';
import {
  goldenBytes,
  goldenId,
  goldenRepository,
  goldenWeights,
} from '../models/wan/testing/golden-model';
import { isConverted } from '../pipeline/installation';
import { openModel } from '../pipeline/open';
import { modelLock } from '../weights/store';
import type { ListedModel } from './environment';
import type { Library } from './library';
import { libraryTests, local, modelOf, partOf, until } from './testing/library';

const [five, large] = ['five', 'large'] as const;
const now = libraryTests();

async function goldenFields() {
  const file = await fetch(`${now().hub.url}/${goldenRepository}/resolve/main/kinora.json`);
  return file.json();
}

/** Tabs with two listed models of the golden files; the second keeps its VAE with the first. */
async function openTabs(): Promise<() => Library> {
  const fields = await goldenFields();
  const components = fields.components.map((one: { id: string }) =>
    one.id === 'vae' ? { ...one, keptWith: five } : one,
  );
  const models: readonly ListedModel[] = [
    { manifest: testManifest({ ...fields, id: five, name: 'Five' }), base: null },
    { manifest: testManifest({ ...fields, id: large, name: 'Large', components }), base: null },
  ];
  return () => now().openTab({ listed: async () => models, unitLimit: 16 * 1024 });
}

/** Stops a download of a model in the VAE; what is on disk then is what the end of the browser leaves. */
async function stopInVae(library: Library, id: string): Promise<void> {
  now().slowVae();
  const downloading = library.download(id, 'int8');
  await until(library, (snapshot) => bytesOf(snapshot, id) > 0);
  await library.pause(id);
  await downloading;
  now().hub.heal();
}

function bytesOf({ models }: LibrarySnapshot, id: string): number {
  const { parts = [] } = models.find(({ manifest }) => manifest.id === id) ?? {};
  return parts.find(({ component }) => component === 'vae')?.bytesDone ?? 0;
}

const stored = () => now().folder(`${five}/vae`).list();

test.each([
  [five, large],
  [large, five],
])('half of a shared part is of %s, which wants it, and never of %s', async (own, other) => {
  const open = await openTabs();
  await stopInVae(open(), own);
  const library = open();
  const half = await partOf(library, 'vae', own);
  expect(half).toMatchObject({ status: 'paused', pausedBy: 'interrupted' });
  expect((await modelOf(library, other)).parts.map(({ status }) => status)).toEqual(
    (await modelOf(library, other)).parts.map(() => 'absent'),
  );
  // Nor does it resume, cancel or delete what is not its own.
  now().hub.forget();
  await library.resume(other);
  await library.cancel(other);
  await library.deleteModel(other);
  expect(now().hub.requests).toEqual([]);
  expect(await partOf(open(), 'vae', own)).toEqual(half);
  await open().resume(own);
  expect(now().served('vae').bytes).toBe((half.bytesTotal ?? 0) - half.bytesDone);
  expect((await modelOf(open(), own)).ready).toBe(true);
});

test('what two models want is deleted when the second of them is cancelled', async () => {
  const open = await openTabs();
  await stopInVae(open(), five);
  await stopInVae(open(), large);
  const library = open();
  for (const id of [five, large]) {
    expect(await partOf(library, 'vae', id)).toMatchObject({ pausedBy: 'interrupted' });
  }
  await library.cancel(five);
  expect(bytesOf(await library.snapshot(), large)).toBeGreaterThan(0);
  await library.cancel(large);
  expect(await stored()).toEqual([]);
});

test('a complete shared part is no beginning of the other model, and is counted once', async () => {
  const library = (await openTabs())();
  await library.download(five, 'int8');
  await until(library, (snapshot) => bytesOf(snapshot, large) > 0);
  const { shared, ready } = await modelOf(library, large);
  expect({ shared, ready }).toEqual({ shared: ['vae'], ready: false });
  const snapshot = await library.snapshot();
  const own = (await modelOf(library, five)).stored.map(({ bytesStored }) => bytesStored);
  expect(snapshot.bytesStored).toBe(own.reduce((sum, bytes) => sum + bytes, 0));
  // The browser of these tests reports 0: its counter is behind, what it gives is not.
  expect(snapshot.storage).toMatchObject({ usage: snapshot.bytesStored });
  expect(snapshot.storage.quota - snapshot.storage.usage).toBe(2 ** 40);
});

/** Publishes a manifest of the golden files as another model. */
async function publishCopy(changes: object = {}): Promise<void> {
  const { repositories } = now().hub;
  const fields = { ...(await goldenFields()), ...changes, id: 'copy', name: 'Copy' };
  repositories.put('kinora/copy', 'kinora.json', JSON.stringify(fields));
}

const weights = ['transformer', 'text_encoder', 'vae', 'tiny_decoder'];

test('an added model of the files of one that is here fetches no weights again', async () => {
  // What is added may name no folder of another model itself: engine and library would look into it.
  const { components: own } = await goldenFields();
  await publishCopy({ components: own.map((one: object) => ({ ...one, keptWith: '../x' })) });
  const open = await openTabs();
  const library = open();
  await library.download(five, 'int8');
  const { bytesStored } = await library.snapshot();
  const { manifest } = await library.addModel({ address: 'kinora/copy' });
  expect(manifest.components.map(({ keptWith }) => keptWith)).toEqual(own.map(() => five));
  // In another form it would be replaced for both.
  await expect(library.planDownload('copy', 'int4')).rejects.toMatchObject({ code: 'MODEL_BUSY' });
  await expect(library.download('copy', 'int4')).rejects.toMatchObject({ code: 'MODEL_BUSY' });
  const { parts } = await library.planDownload('copy', 'int8');
  const left = parts.filter(({ bytesLeft }) => bytesLeft > 0).map(({ component }) => component);
  expect(left.filter((component) => isConverted(component))).toEqual([]);
  now().hub.forget();
  // A run of the other model goes on meanwhile.
  now().held.add(modelLock(five));
  await library.download('copy', 'int8');
  now().held.delete(modelLock(five));
  expect(weights.map((component) => now().served(component).bytes)).toEqual([0, 0, 0, 0]);
  const copy = await modelOf(library, 'copy');
  expect(copy).toMatchObject({ ready: true, shared: weights });
  const plain = copy.stored.filter(({ component }) => !isConverted(component));
  const added = plain.reduce((sum, one) => sum + one.bytesStored, 0);
  expect((await library.snapshot()).bytesStored).toBe(bytesStored + added);
  const store = now().folder('.');
  const manifests = new URL('http://127.0.0.1/');
  await openModel('copy', { families: modelFamilies, manifests, store });

  await library.deleteModel(five);
  expect(await modelOf(library, five)).toMatchObject({ ready: false });
  await library.verify('copy');
  expect(await modelOf(open(), 'copy')).toMatchObject({ ready: true, parts: copy.parts });
  await library.forgetModel('copy');
  for (const component of weights) {
    expect(await now().folder(`${five}/${component}`).list()).toEqual([]);
  }
});

test('local files take no part from another model', async () => {
  await publishCopy();
  const open = await openTabs();
  const library = open();
  await library.download(five, 'int8');
  await library.addModel({ address: 'kinora/copy' });
  await library.download('copy', 'int8');
  const before = await now().folder(`${five}/vae`).readText('manifest.json');
  await library.importFiles('copy', 'int8', [await local(goldenWeights.vae, 'mine.safetensors')]);
  expect(await now().folder(`${five}/vae`).readText('manifest.json')).toBe(before);
  expect(await partOf(library, 'vae', 'copy')).toMatchObject({
    notice: 'The file was left out: another model here has this part as well.',
  });
});

test('an added model that an earlier version wrote keeps what is its own', async () => {
  const open = await openTabs();
  const { components, sources, ...fields } = await goldenFields();
  const manifest = {
    ...fields,
    id: 'old',
    components: components.map((one: object) => ({ ...one, keptWith: five })),
    // Another file than that of the listed model.
    sources: sources.map(
      ({ files: [file], ...source }: { files: object[]; component: string }) => ({
        ...source,
        files: [source.component === 'transformer' ? { ...file, path: 'own.gguf' } : file],
      }),
    ),
  };
  await now().folder('old').writeText('model.json', JSON.stringify(manifest));
  // A folder that is there already.
  await now().folder('old/vae').writeText('journal', '');
  const old = await modelOf(open(), 'old');
  const own = old.manifest.components.filter(({ keptWith }) => keptWith === undefined);
  expect(own.map(({ id }) => id)).toEqual(['transformer', 'vae']);
  const written = JSON.parse((await now().folder('old').readText('model.json')) ?? '');
  expect(written.components).toEqual(JSON.parse(JSON.stringify(old.manifest.components)));
});

test('the whole of a download is known from its start to its end, here and in other tabs', async () => {
  const { repositories } = now().hub;
  const file = { repository: goldenRepository, path: 'weights/guidance.safetensors' };
  repositories.put(file.repository, file.path, await goldenBytes('loras/a_peft.safetensors'));
  const { sources } = await goldenFields();
  await publishCopy({ sources: [...sources, { component: 'guidance_adapter', files: [file] }] });
  const library = now().openTab({ unitLimit: 16 * 1024 });
  await library.addModel({ address: 'kinora/copy' });
  const [second, id] = [now().openTab(), 'copy'];
  const plan = await library.planDownload(id, 'int8');
  const total = plan.parts.reduce((sum, { bytesTotal }) => sum + bytesTotal, 0);
  now().slowVae();
  const downloading = library.download(id, 'int8');
  const totals = new Set<number | null>();
  await until(library, ({ models }) => {
    const { parts = [] } = models.find(({ manifest }) => manifest.id === id) ?? {};
    const begun = parts.some(({ status }) => status === 'downloading');
    if (begun) totals.add(progressOf(parts).bytesTotal);
    return parts.some(({ component, bytesDone }) => component === 'vae' && bytesDone > 0);
  });
  expect(await partOf(library, 'guidance_adapter', id)).toMatchObject({ bytesTotal: null });
  await until(second, ({ models }) => models.some(({ elsewhere }) => elsewhere !== null));
  expect((await modelOf(second, id)).elsewhere).toMatchObject({ bytesTotal: total });
  await library.pause(id);
  await downloading;
  expect([...totals]).toEqual([total]);
  // After the end of the browser as well, of parts too that had not begun.
  expect(progressOf((await modelOf(now().openTab(), id)).parts)).toMatchObject({
    bytesTotal: total,
  });
});

test('a check of all bytes tells how far it is, over all parts', async () => {
  const slow = (folder: ReturnType<LibraryTestFolder>): ReturnType<LibraryTestFolder> => ({
    ...folder,
    folder: (name) => slow(folder.folder(name)),
    open: async (name) => {
      if (checking && name.endsWith('.bin'))
        await new Promise((resolve) => setTimeout(resolve, 60));
      return folder.open(name);
    },
  });
  let checking = false;
  const library = await now().openModelTab({ models: slow(now().folder('.')) });
  await library.download(goldenId, 'int8');
  const before = await modelOf(library);
  checking = true;
  const seen: number[] = [];
  let whole: number | null = null;
  await library.subscribe(({ models }) => {
    const { parts = [] } = models.find(({ manifest }) => manifest.id === goldenId) ?? {};
    if (!parts.some(({ status }) => status === 'verifying')) return;
    const { bytesDone, bytesTotal } = progressOf(parts);
    seen.push(bytesDone);
    whole = bytesTotal;
  });
  await library.verify(goldenId);
  expect(whole).toBe(progressOf(before.parts).bytesTotal);
  expect(seen.length).toBeGreaterThan(2);
  expect(seen).toEqual([...seen].sort((a, b) => a - b));
  expect(seen[0]).toBeLessThan((whole ?? 0) / 10);
  expect((await modelOf(library)).parts).toEqual(before.parts);
});

type LibraryTestFolder = ReturnType<typeof now>['folder'];

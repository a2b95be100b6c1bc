/** @module-tag full */
import { expect, test } from 'vitest';
import { defaultSafetyChecker, parseManifest } from '../contract';
import { goldenId, goldenRepository } from '../models/wan/testing/golden-model';
import { deleteComponent, findSafetyChecker } from '../weights/store';
import { libraryTests, listed, modelOf, partOf, weightPath } from './testing/library';

const now = libraryTests();
const repository = defaultSafetyChecker.files[0]?.repository ?? '';
const weights = `${repository}/resolve/${defaultSafetyChecker.files[0]?.revision}/model.safetensors`;
const find = (id: string) => findSafetyChecker(now().folder('.'), id);

test('comes with every model, and is verified, healed and deleted as its other parts', async () => {
  const library = now().openTab();
  await library.addModel({ address: goldenRepository });
  expect(await find(goldenId)).toBeNull();
  now().hub.fail({
    fault: { kind: 'cut', afterBytes: 100_000 },
    path: weights,
    host: 'storage',
    fromByte: 1,
  });
  await library.download(goldenId, 'int8');
  expect(await partOf(library, 'safety_checker')).toMatchObject({ status: 'complete' });
  const { sha256 } = now().hub.repositories.list(repository)?.get('model.safetensors') ?? {};
  const checker = await find(goldenId);
  expect(checker).toMatchObject({ model: repository, sha256 });
  expect(await checker?.folder.json('config.json')).toMatchObject({ num_classes: 2 });
  // It serves models without one of their own.
  expect(await find('tiny')).toMatchObject({ sha256 });

  const file = await now().folder(`${goldenId}/safety_checker`).write('model.safetensors');
  await file.write(5000, new Uint8Array([1, 2, 3, 4]));
  await file.close();
  await library.verify(goldenId);
  expect(await partOf(library, 'safety_checker')).toMatchObject({
    status: 'absent',
    error: { code: 'MODEL_FILE_INVALID' },
  });
  await library.download(goldenId, 'int8');
  expect(await partOf(library, 'safety_checker')).toMatchObject({ status: 'complete' });
  await library.deleteModel(goldenId);
  expect(await find(goldenId)).toBeNull();
});

test('is fetched alone for a model that lost it, which is ready without it', async () => {
  const library = now().openTab();
  await library.addModel({ address: goldenRepository });
  await library.download(goldenId, 'int8');
  await deleteComponent(now().folder(`${goldenId}/safety_checker`));

  const later = now().openTab();
  expect(await modelOf(later)).toMatchObject({ ready: true });
  expect(await partOf(later, 'safety_checker')).toMatchObject({ status: 'absent' });
  now().hub.forget();
  await later.download(goldenId, 'int8');
  expect(await partOf(later, 'safety_checker')).toMatchObject({ status: 'complete' });
  expect(now().served('transformer').bytes).toBe(0);
});

test('is fetched for the bundled model, which stays bundled and runs without it', async () => {
  const library = now().openTab();
  expect(await modelOf(library, 'tiny')).toMatchObject({ origin: 'bundled', ready: true });
  const plan = await library.planDownload('tiny', 'f32');
  expect(plan.parts.map(({ component }) => component)).toEqual(['safety_checker']);
  await library.download('tiny', 'f32');
  expect(await modelOf(library, 'tiny')).toMatchObject({
    origin: 'bundled',
    ready: true,
    parts: [{ component: 'safety_checker', status: 'complete' }],
  });
  await library.verify('tiny');
  await library.deleteModel('tiny');
  expect(await modelOf(library, 'tiny')).toMatchObject({ ready: true, stored: [] });
});

test('is refused by its labels, before any weight of the model is fetched', async () => {
  const library = now().openTab();
  await library.addModel({ address: goldenRepository });
  const config = '{"pretrained_cfg":{"label_names":["cat","dog"]}}';
  now().hub.repositories.put(repository, 'config.json', config);
  now().hub.forget();
  await expect(library.download(goldenId, 'int8')).rejects.toMatchObject({
    code: 'MODEL_CONFIG_INVALID',
  });
  expect(now().hub.served(weightPath('vae')).bytes).toBeLessThan(100_000);
});

test.each([
  { part: 'safety_checker', ready: true },
  { part: 'vae', ready: false },
])('where the hub has no repository of the $part, everything else is fetched', async (expected) => {
  const { part, ready } = expected;
  const { bytes } = now().hub.repositories.list(goldenRepository)?.get('kinora.json') ?? {};
  const published = JSON.parse(new TextDecoder().decode(bytes));
  const files = [{ repository: 'owner/gone', path: 'model.safetensors' }];
  const others = published.sources.filter((one: { component: string }) => one.component !== part);
  const sources = [...others, { component: part, files }];
  const manifest = parseManifest({ ...published, sources });
  const base = await listed('wan2.2-ti2v-5b');
  const library = now().openTab({ listed: async () => [{ manifest, base: null }, base] });
  const { parts } = await library.planDownload(goldenId, 'int8');
  const missing = parts.filter(({ bytesTotal }) => bytesTotal === 0);
  expect(missing.map(({ component }) => component)).toEqual([part]);
  await expect(library.download(goldenId, 'int8')).rejects.toMatchObject({
    code: 'HUB_NOT_FOUND',
    message: expect.stringContaining('owner/gone'),
  });
  const model = await modelOf(library);
  expect(model.ready).toBe(ready);
  for (const { component, status } of model.parts.filter((one) => one.status !== 'absent')) {
    expect([component, status]).toEqual([component, component === part ? 'failed' : 'complete']);
  }
  // What is here is not asked for again.
  now().hub.forget();
  const later = await library.planDownload(goldenId, 'int8');
  expect(later.parts.filter(({ bytesTotal }) => bytesTotal === 0)).toHaveLength(1);
  expect(now().served('transformer').requests).toBe(0);
});

test('is not fetched where it is not asked for', async () => {
  const library = await now().openModelTab();
  now().hub.forget();
  const without = ['safety_checker'] as const;
  const { parts } = await library.planDownload(goldenId, 'int8', undefined, without);
  expect(parts.map(({ component }) => component)).not.toContain('safety_checker');
  await library.download(goldenId, 'int8', undefined, without);
  expect(await modelOf(library)).toMatchObject({ ready: true });
  expect(await partOf(library, 'safety_checker')).toMatchObject({ status: 'absent' });
  expect(now().hub.served(weights).requests).toBe(0);
});

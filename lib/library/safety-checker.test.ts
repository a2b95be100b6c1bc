/** @module-tag full */
import { expect, test } from 'vitest';
import { defaultSafetyChecker } from '../contract';
import { goldenId, goldenRepository } from '../models/wan22/testing/golden-model';
import { deleteComponent, findSafetyChecker } from '../weights/store';
import { libraryTests, modelOf, partOf, weightPath } from './testing/library';

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

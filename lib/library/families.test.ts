import { expect, test } from 'vitest';
import { modelFamilies } from '../models';
import { openStoredComponent } from '../weights/store';
import { f32, safetensorsBytes } from '../weights/testing/files';
import { libraryTests, modelOf } from './testing/library';
import { parts, twoExperts, twoExpertsManifest } from './testing/two-experts';

const now = libraryTests();
const { id } = twoExpertsManifest;
const repository = 'kinora/two-experts';

/** A tab that knows a second family, and its model on the hub. */
function open(low = 3) {
  const put = (path: string, content: Uint8Array<ArrayBuffer> | string) =>
    now().hub.repositories.put(repository, path, content);
  put('kinora.json', JSON.stringify(twoExpertsManifest));
  put('sizes.json', JSON.stringify({ high_noise: 2, low_noise: 3, image_encoder: 4 }));
  const sizes = { high_noise: 2, low_noise: low, image_encoder: 4 };
  for (const part of parts) {
    put(
      `${part}.safetensors`,
      safetensorsBytes({ [part]: f32([sizes[part]], [1, 2, 3, 4].slice(0, sizes[part])) }),
    );
  }
  return now().openTab({ families: { ...modelFamilies, [id]: { installation: twoExperts } } });
}

test('a model of another family, with components and frames of its own, is downloaded, checked and stored', async () => {
  const library = open();
  const added = await library.addModel({ address: repository });
  expect(added.manifest).toMatchObject({ family: id, framesPerSecond: 16, frameStride: 8 });
  const all = ['configuration', ...parts, 'safety_checker'];
  expect(added.parts.map(({ component }) => component)).toEqual(all);
  await library.download(id, 'int8');
  const model = await modelOf(library, id);
  expect(model.ready).toBe(true);
  expect(new Set(model.stored.map(({ component }) => component))).toEqual(new Set(all));
  const stored = await openStoredComponent(now().folder(`${id}/low_noise`));
  expect(await stored.read('low_noise')).toEqual(Float32Array.of(1, 2, 3));
  // Another precision asks for both experts anew; the image encoder is the same in each.
  const { parts: planned } = await library.planDownload(id, 'f32');
  const left = planned.filter(({ bytesLeft }) => bytesLeft > 0).map(({ component }) => component);
  expect(left).toEqual(['high_noise', 'low_noise']);
});

test('weights that do not fit its configuration are refused when it is added', async () => {
  const library = open(2);
  await expect(library.addModel({ address: repository })).rejects.toMatchObject({
    code: 'TENSOR_SHAPE',
    message: 'low_noise is [2], expected [3].',
  });
});

test('a LoRA is asked of the family of each model', async () => {
  const library = open();
  await library.addModel({ address: repository });
  await library.download(id, 'int8');
  const bytes = safetensorsBytes({ 'expert.down': f32([2, 3]) });
  const file = new File([bytes], 'expert.safetensors');
  const lora = await library.addLora({ file });
  expect(lora).toMatchObject({ base: 'Two experts', rank: 2 });
});

import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { beforeEach, expect, test } from 'vitest';
import { testManifest } from '../contract/testing/manifest';
import { diskFolder } from '../weights/testing/files';
import type { Library } from './library';
import { libraryTests } from './testing/library';

const goldens = fileURLToPath(new URL('../models/wan/goldens/', import.meta.url));
const now = libraryTests();

/** The twins of both 14B models. */
const listed = async () =>
  ['tiny-wan22-a14b', 'tiny-wan21-i2v'].map((id) => {
    const sources = [
      { component: 'configuration', files: [{ repository: 'ann/twin', path: 'c.json' }] },
    ];
    const manifest = testManifest({ id, name: id, family: 'wan14b', sources });
    return { manifest, base: diskFolder(`${goldens}${id}/model/`) };
  });

async function loraOf(twin: string): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await readFile(`${goldens}${twin}/loras/a_comfy.safetensors`));
}

let library: Library;
beforeEach(() => {
  library = now().openTab({ listed });
});

test('a repository with a pair adds both files, which are deleted together', async () => {
  const bytes = await loraOf('tiny-wan22-a14b');
  const other = bytes.slice();
  other[other.length - 2] = (other.at(-2) ?? 0) ^ 1;
  now().hub.repositories.put('ann/pair', 'LowNoise/style.safetensors', other);
  now().hub.repositories.put('ann/pair', 'HighNoise/style.safetensors', bytes);
  const loras = async () => (await library.snapshot()).loras;

  const entry = await library.addLora({ address: 'ann/pair' });
  expect(entry).toMatchObject({
    name: 'style-high-noise.safetensors',
    source: 'ann/pair/HighNoise/style.safetensors',
    base: '14B (Wan2.2)',
    noise: 'high',
  });
  const both = await loras();
  expect(both.map(({ name, noise }) => [name, noise])).toEqual([
    ['style-high-noise.safetensors', 'high'],
    ['style-low-noise.safetensors', 'low'],
  ]);
  // Again, by its other file: nothing is kept twice.
  await library.addLora({ address: 'ann/pair/LowNoise/style.safetensors' });
  expect(await loras()).toEqual(both);

  await library.deleteLora('style-low-noise.safetensors');
  expect(await loras()).toEqual([]);
  expect(await now().loras.list()).toEqual([]);
});

test('a repository with a pair and another LoRA asks for a name, as one with two does', async () => {
  const bytes = await loraOf('tiny-wan22-a14b');
  for (const name of ['a_high', 'a_low', 'b']) {
    now().hub.repositories.put('ann/three', `${name}.safetensors`, bytes);
  }
  await expect(library.addLora({ address: 'ann/three' })).rejects.toMatchObject({
    code: 'ADDRESS_INVALID',
    message: 'ann/three has 2 LoRAs: name one, such as ann/three/a_high.safetensors.',
  });
});

test.each([
  ['style', 'tiny-wan22-a14b', '14B (Wan2.1, Wan2.2)'],
  ['style', 'tiny-wan21-i2v', '14B (Wan2.1)'],
  ['Wan2_2-style', 'tiny-wan21-i2v', '14B (Wan2.2)'],
  ['wan21_style', 'tiny-wan22-a14b', '14B (Wan2.1)'],
  ['style_LOW', 'tiny-wan21-i2v', '14B (Wan2.2)'],
  ['low-poly', 'tiny-wan22-a14b', '14B (Wan2.1, Wan2.2)'],
])('%s of %s is for %s, and both 14B models take it', async (name, twin, base) => {
  const file = new File([await loraOf(twin)], `${name}.safetensors`);
  expect(await library.addLora({ file })).toMatchObject({ base });
  expect(await library.modelsOfLora(file)).toEqual(['tiny-wan22-a14b', 'tiny-wan21-i2v']);
  // Eight tensors of an image branch, which A14B has none of.
  const unused = twin === 'tiny-wan21-i2v' ? 8 : 0;
  expect(await library.inspectLora('tiny-wan22-a14b', file)).toMatchObject({ unused });
  expect(await library.inspectLora('tiny-wan21-i2v', file)).toMatchObject({ unused: 0 });
});

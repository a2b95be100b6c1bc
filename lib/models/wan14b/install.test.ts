import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { testManifest } from '../../contract/testing/manifest';
import { libraryTests, modelOf } from '../../library/testing/library';
import { openSafetensors } from '../../weights';
import { diskFolder } from '../../weights/testing/files';
import { modelFamilies } from '..';
import { goldenImage } from '../wan/parity';
import { nodeBackend } from '../wan22/testing/model';
import { conditionName, featuresName } from './denoiser';
import { wan14bInstallation } from './install';
import type { Wan14b } from './wan14b';

const now = libraryTests();
const backend = nodeBackend();
afterAll(() => backend.dispose());

const path = (folder: string) => fileURLToPath(new URL(folder, import.meta.url));
const repository = 'kinora/twin';

/** Puts a twin on the hub, with the text encoder and the tokenizer of the 5B's. */
async function publish(name: string, components: readonly string[]) {
  const own = path(`./goldens/${name}/`);
  const text = path('../wan22/goldens/');
  const fileOf = (component: string) =>
    component === 'text_encoder' || component === 'image_encoder'
      ? `${component}/model.safetensors`
      : `${component}/diffusion_pytorch_model.safetensors`;
  const put = async (file: string) => {
    const root = /^(text_encoder|tokenizer)\//.test(file) ? text : own;
    const bytes = await readFile(`${root}model/${file}`).catch(() => null);
    if (bytes) now().hub.repositories.put(repository, file, new Uint8Array(bytes));
    return bytes !== null;
  };
  const configuration = [];
  for (const file of wan14bInstallation.configurationFiles) {
    if (await put(file)) configuration.push({ repository, path: file });
  }
  for (const component of components) await put(fileOf(component));
  const manifest = testManifest({
    id: name,
    family: 'wan14b',
    name,
    framesPerSecond: 16,
    precision: 'int8',
    components: components.map((id) => ({
      id,
      precisions: /transformer|text/.test(id) ? ['f32', 'int8'] : [],
    })),
    sources: [
      { component: 'configuration', files: configuration },
      ...components.map((id) => ({ component: id, files: [{ repository, path: fileOf(id) }] })),
    ],
  });
  now().hub.repositories.put(repository, 'kinora.json', JSON.stringify(manifest));
}

test.each([
  ['tiny-wan22-a14b', ['text_encoder', 'transformer', 'transformer_2', 'vae']],
  ['tiny-wan21-i2v', ['text_encoder', 'transformer', 'image_encoder', 'vae']],
])(
  '%s is downloaded, stored, and makes of a picture what its references have',
  {
    tags: ['full'],
    timeout: 120_000,
  },
  async (name, components) => {
    await publish(name, components);
    const library = now().openTab({ families: modelFamilies });
    const added = await library.addModel({ address: repository });
    expect(added.manifest).toMatchObject({ family: 'wan14b', framesPerSecond: 16 });
    await library.download(name, 'int8');
    expect((await modelOf(library, name)).ready).toBe(true);
    const model = (await modelFamilies.wan14b?.openInstalled(
      added.manifest,
      now().folder(name),
    )) as Wan14b;
    expect(model.parts.packed).toBe(true);
    const golden = await openSafetensors(
      await diskFolder(path(`./goldens/${name}/`)).open('golden.safetensors'),
    );
    const image = await goldenImage(golden, 'image_rgb_u8');
    const { signal } = new AbortController();
    const made = await model.encodeImages(backend, [{ frame: 0, image }], 9, signal);
    const far = async (key: string, reference: string) => {
      const expected = await golden.read(reference);
      return Math.max(...expected.map((value, i) => Math.abs(value - (made[key]?.[i] ?? NaN))));
    };
    // VAE and image encoder are stored in 16 bits where that is exact enough.
    expect(await far(conditionName, 'condition')).toBeLessThan(0.02);
    if (model.parts.imageEncoder) expect(await far(featuresName, 'clip_hidden')).toBeLessThan(0.02);
  },
);

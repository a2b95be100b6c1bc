import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { testManifest } from '../../contract/testing/manifest';
import type { ListedModel } from '../../library/environment';
import { libraryTests, modelOf, until } from '../../library/testing/library';
import { readPicture } from '../../parity/golden';
import { openSafetensors } from '../../weights';
import { storeOfModel } from '../../weights/store';
import { diskFolder } from '../../weights/testing/files';
import { modelFamilies } from '..';
import { memoryStorage, shortRun } from '../testing/short-run';
import { conditionName, featuresName } from './condition';
import type { WanModel } from './model';
import { goldenId, goldenPath, goldenRepository, publishGoldenModel } from './testing/golden-model';
import { nodeBackend } from './testing/model';

const now = libraryTests();
const backend = nodeBackend();
afterAll(() => backend.dispose());

const path = (folder: string) => fileURLToPath(new URL(folder, import.meta.url));
const repository = 'kinora/twin';
const five = 'wan2.2-ti2v-5b';

const fileOf = (component: string) =>
  component === 'image_encoder'
    ? `${component}/model.safetensors`
    : `${component}/diffusion_pytorch_model.safetensors`;

/** Puts a twin on the hub, and lists it with a manifest like those of the real models. */
async function publish(name: string, components: readonly string[]): Promise<ListedModel> {
  const own = path(`./goldens/${name}/`);
  const put = async (file: string, from: string) => {
    const bytes = await readFile(from).catch(() => null);
    if (bytes) now().hub.repositories.put(repository, file, new Uint8Array(bytes));
    return bytes !== null;
  };
  const configuration = [];
  for (const file of modelFamilies.wan14b.installation.configurationFiles) {
    const root = /^(text_encoder|tokenizer)\//.test(file)
      ? path('./goldens/tiny-wan22-ti2v/')
      : own;
    if (await put(file, `${root}model/${file}`)) configuration.push({ repository, path: file });
  }
  for (const component of components) {
    await put(fileOf(component), `${own}model/${fileOf(component)}`);
  }
  const pair = ['high', 'low'].map((expert) => `adapter_${expert}_noise.safetensors`);
  for (const file of pair) await put(file, `${own}loras/a_comfy.safetensors`);
  const manifest = testManifest({
    id: name,
    family: 'wan14b',
    name,
    framesPerSecond: 16,
    maxClipFrames: 81,
    precision: 'int8',
    components: [
      ...components.map((id) => ({
        id,
        precisions: id.startsWith('transformer') ? ['f32', 'int8'] : [],
      })),
      { id: 'text_encoder', precisions: ['f32', 'int8'], keptWith: five },
    ],
    sources: [
      { component: 'configuration', files: configuration },
      ...components.map((id) => ({ component: id, files: [{ repository, path: fileOf(id) }] })),
      {
        component: 'text_encoder',
        files: [{ repository: goldenRepository, path: goldenPath('text_encoder') }],
      },
      { component: 'adapter', files: pair.map((file) => ({ repository, path: file })) },
    ],
    profiles: {
      'ultra-fast': {
        adapters: [
          {
            name: 'Twin',
            repository,
            path: pair[0],
            licence: { name: 'Apache-2.0' },
            scheduler: { kind: 'euler', timesteps: [1000, 937.5, 833.33, 625] },
          },
        ],
      },
    },
  });
  return { manifest, base: null };
}

/** The golden model under the id of the 5B, which comes with Kinora. */
async function listedFive(): Promise<ListedModel> {
  await publishGoldenModel(now().hub);
  const { hub } = now();
  const file = await fetch(`${hub.url}/${goldenRepository}/resolve/main/kinora.json`);
  const { safety_checker: _, ...fields } = await file.json();
  expect(fields.id).toBe(goldenId);
  return { manifest: testManifest({ ...fields, id: five, name: 'Five' }), base: null };
}

test.each([
  ['tiny-wan22-a14b', ['transformer', 'transformer_2', 'vae']],
  ['tiny-wan21-i2v', ['transformer', 'image_encoder', 'vae']],
])(
  '%s is downloaded through faults, with the text encoder of the 5B, and makes a video with its pair of adapters',
  {
    tags: ['full'],
    timeout: 240_000,
  },
  async (name, components) => {
    const models = [await listedFive(), await publish(name, components)];
    const library = now().openTab({ families: modelFamilies, listed: async () => models });
    await library.download(five, 'int8');
    await until(library, ({ models: entries }) =>
      entries.some(({ manifest, parts }) =>
        parts.some(
          (one) =>
            manifest.id === name && one.component === 'text_encoder' && one.status === 'complete',
        ),
      ),
    );
    now().hub.forget();
    // Cut, unavailable, expired, a whole file for a range, a shorter range: each once or twice.
    const faults = [
      { kind: 'cut', afterBytes: 1000 },
      { kind: 'status', status: 503 },
      { kind: 'expired' },
      { kind: 'whole' },
      { kind: 'short', bytes: 500 },
      { kind: 'reset' },
    ] as const;
    for (const [i, fault] of faults.entries()) {
      const file = fileOf(components[i % components.length] ?? '');
      now().hub.fail({ fault, path: file, host: 'storage', times: 1 });
    }
    await library.download(name, 'int8');
    expect((await modelOf(library, name)).ready).toBe(true);
    expect(now().hub.served(goldenPath('text_encoder')).bytes).toBe(0);
    // What has its SHA-256 on the hub is read from where the other model keeps it.
    expect(now().hub.served('tokenizer/tokenizer.json').bytes).toBe(0);

    const manifest = models[1]?.manifest;
    if (!manifest) throw new Error('the model is not listed');
    const model = (await modelFamilies.wan14b.openInstalled(
      manifest,
      storeOfModel(now().folder('.'), manifest),
    )) as WanModel;
    expect(model.parts.packed).toBe(true);
    const golden = await openSafetensors(
      await diskFolder(path(`./goldens/${name}/`)).open('golden.safetensors'),
    );
    const image = await readPicture(golden, 'image_rgb_u8');
    const { signal } = new AbortController();
    const made = await model.encodeImages(backend, [{ frame: 0, image }], 9, signal);
    const far = async (key: string, reference: string) => {
      const expected = await golden.read(reference);
      return Math.max(...expected.map((value, i) => Math.abs(value - (made[key]?.[i] ?? NaN))));
    };
    // VAE and image encoder are stored in 16 bits where that is exact enough.
    expect(await far(conditionName, 'condition')).toBeLessThan(0.02);
    if (model.parts.imageEncoder) expect(await far(featuresName, 'clip_hidden')).toBeLessThan(0.02);
    const fast = await model.withLoras([], { adapter: 1 });
    const video = await shortRun(backend, fast, 9, memoryStorage());
    expect(video.frames).toHaveLength(9);
    expect(fast.fingerprint).not.toBe(model.fingerprint);

    await library.deleteModel(five);
    expect((await modelOf(library, name)).ready).toBe(true);
    await library.deleteModel(name);
    expect((await modelOf(library, name)).stored).toEqual([]);
    expect(await now().folder(`${five}/text_encoder`).list()).toEqual([]);
  },
);

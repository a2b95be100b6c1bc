/** @module-tag full */
import { createHash } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { temporaryFolder } from '../../contract/testing/folder';
import { type ReadableTensor, relativeRms, Scope } from '../../gpu';
import { type Golden, openFile } from '../../parity/golden';
import { openWan, Wan } from '../../parity/wan';
import { type Checkpoint, openTensorFile } from '../../weights';
import {
  openStoredComponent,
  type StoreFolder,
  storedBytes,
  verifyComponent,
} from '../../weights/store';
import { diskStore } from '../../weights/store/testing/disk';
import { diskFile, diskFolder, goldens } from '../../weights/testing/files';
import { readModelConfig } from './model-config';
import { openStoredParts } from './parts';
import { componentRecipe } from './recipes';
import { nodeBackend, realFolder, tinyFolder, tinyManifest, transformerOf } from './testing/model';
import { hosted, installGolden, installGoldenModel, original } from './testing/stored';
import { decoderGraphs } from './vae/decoder';
import { clipEncoderGraphs } from './vae/encoder';
import { matchesOf, runtimeWeights } from './vae/vae-executor';
import { encoderFrame } from './vae/vae-network';
import { VaeReader } from './vae/vae-weights';
import { openComponent } from './wan-naming';

const root = temporaryFolder();
let store: StoreFolder;
beforeEach(() => {
  store = diskStore(root());
});

/** A component read from its file, without the store. */
async function fromFile(component: keyof typeof hosted, file: string): Promise<Checkpoint> {
  const config = await readModelConfig(tinyFolder);
  return openComponent(component, [await openTensorFile(await diskFile(goldens + file))], config);
}

describe('a component in the store', () => {
  test.each(['transformer', 'text_encoder'] as const)(
    'the %s from Q8_0 has the very quants of its file, one layer in one pack',
    async (component) => {
      const stored = await installGolden(store, component, hosted[component], 'int8');
      const file = await fromFile(component, hosted[component]);
      const kept = await openStoredComponent(store.folder(component));
      for (const name of kept.names()) {
        expect(await kept.read(name), name).toEqual(await file.read(name));
      }
      expect(stored).toMatchObject({ sourceType: 'Q8_0', worst: null });
      expect(await store.folder(component).list()).toContain(
        component === 'transformer' ? 'block-01.bin' : 'layer-01.bin',
      );
    },
  );

  test.each(['transformer', 'text_encoder'] as const)(
    'the %s from f32 in f32 is the file, and in blocks near it',
    async (component) => {
      const file = await fromFile(component, original[component]);
      await installGolden(store, component, original[component], 'f32');
      const exact = await openStoredComponent(store.folder(component));
      for (const name of exact.names()) {
        expect(await exact.read(name), name).toEqual(await file.read(name));
      }
      for (const [precision, most] of [
        ['int8', 0.01],
        ['int4', component === 'text_encoder' ? 0.01 : 0.15],
      ] as const) {
        const stored = await installGolden(store, component, original[component], precision);
        expect(stored.worst?.relativeError).toBeGreaterThan(0);
        expect(stored.worst?.relativeError).toBeLessThan(most);
        await verifyComponent(store.folder(component));
      }
    },
  );

  test.each([original.vae, hosted.vae])(
    'the VAE from %s has bit-identical kernels',
    async (path) => {
      await installGolden(store, 'vae', path, 'int8');
      const kept = await openStoredComponent(store.folder('vae'));
      const [expected, found] = [await kernels(await fromFile('vae', path)), await kernels(kept)];
      expect(Object.keys(expected).length).toBeGreaterThan(20);
      expect(found).toEqual(expected);
    },
  );
});

/** What is put on the device for each layer. */
async function kernels(checkpoint: Checkpoint): Promise<Record<string, Float32Array>> {
  const backend = nodeBackend();
  const scope = new Scope(backend);
  const { vae } = await readModelConfig(diskFolder(`${goldens}model`));
  const size = { latentHeight: 4, latentWidth: 6 };
  const graphs = [...decoderGraphs(vae, size), ...clipEncoderGraphs(vae, 4, 6)];
  const matches = matchesOf([...graphs, encoderFrame(vae, 4, 6)]);
  const all: Record<string, Float32Array> = {};
  for (const [key, match] of matches) {
    const tensors = await runtimeWeights(new VaeReader(checkpoint), scope, match);
    for (const [role, tensor] of Object.entries(tensors)) {
      all[`${key} ${role}`] = await backend.read(tensor as ReadableTensor);
    }
  }
  scope.dispose();
  return all;
}

describe('a model in the store', () => {
  test('opens with its precision and packed layers, and gives the golden latents', async () => {
    await installGoldenModel(store, hosted, 'int8');
    const model = await openStoredParts(tinyManifest(), store);
    expect(model).toMatchObject({ precision: 'int8', packed: true });
    expect(await model.folder.exists('tokenizer/tokenizer.json')).toBe(true);
    const transformer = transformerOf(model);
    const names = [...transformer.names()].filter((name) => name.startsWith('blocks.1.'));
    expect((await transformer.readStored(names)).size).toBe(27);

    const folder = diskFolder(goldens);
    const tensors = await openFile(folder, 'golden.safetensors');
    const backend = nodeBackend();
    const own: Golden['own'] = (resource) => resource;
    const golden = { folder, tensors, backend, loraFiles: [], own };
    const { settings, config } = await openWan(golden);
    const parts = { transformer, text_encoder: model.textEncoder, vae: model.vae };
    const open = async (part: string) => parts[part as keyof typeof parts];
    const latents = await new Wan(golden, settings, config, open).whole({ precision: 'int8' });
    const reference = await openFile(folder, 'formats/golden-q8.safetensors');
    expect(relativeRms(latents, await reference.read('final_latents'))).toBeLessThan(1e-3);
    await backend.dispose();
  });

  test('is not installed while a component is missing', async () => {
    await installGoldenModel(store, hosted, 'int8');
    await store.folder('vae').remove('manifest.json');
    const opening = openStoredParts(tinyManifest(), store);
    await expect(opening).rejects.toMatchObject({ code: 'MODEL_NOT_INSTALLED' });
  });
});

describe('the recipe of the real 5B', () => {
  test.each([
    // 5.0e9 parameters of which 30 blocks of 162.5e6 are in blocks of 32 with an f32 scale.
    ['transformer', 'int8', 5.5, 6.5],
    ['transformer', 'int4', 3, 4],
    // 24 layers of 193e6 and 1.05e9 of the embedding, in F16 while its type is not known.
    ['text_encoder', 'int8', 7, 8],
    ['text_encoder', 'int4', 7, 8],
    ['vae', 'int8', 1.5, 1.6],
  ] as const)('the %s in %s takes %s to %s GB', async (component, precision, least, most) => {
    const recipe = componentRecipe(component, await readModelConfig(realFolder), precision);
    const bytes = storedBytes(recipe) / 1e9;
    expect(bytes).toBeGreaterThan(least);
    expect(bytes).toBeLessThan(most);
  });
});

/**
 * SHA-256 of what the recipes of commit 5058699f were for the tiny model: names, sources, shapes, forms,
 * packs and new orders. As long as they are the same, what is stored fits, and a download goes on.
 */
const earlier = {
  transformer: ['21985c180ab55035', '06f5278c2a6e81a2'],
  text_encoder: ['06543e0b9c5f69a6', '06543e0b9c5f69a6'],
  vae: ['6a94d7a0b6104c41', '6a94d7a0b6104c41'],
} as const;

test.each(['transformer', 'text_encoder', 'vae'] as const)(
  'a %s is stored as before',
  async (component) => {
    const config = await readModelConfig(diskFolder(`${goldens}model`));
    for (const [i, precision] of (['int8', 'int4'] as const).entries()) {
      const hash = createHash('sha256');
      const { tensors } = componentRecipe(component, config, precision);
      for (const { name, source, shape, form, pack, reorder } of tensors) {
        hash.update(JSON.stringify([name, source, shape, form, pack, reorder?.shape]));
        const count = shape.reduce((product, n) => product * n, 1);
        if (reorder) hash.update(reorder.apply(Float32Array.from({ length: count }, (_, n) => n)));
      }
      expect(hash.digest('hex').slice(0, 16)).toBe(earlier[component][i]);
    }
  },
);

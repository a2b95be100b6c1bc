/** The golden model in the store, from any of its files, for tests that run in Node. */
import { readFile } from 'node:fs/promises';
import type { Precision, StoredComponent } from '../../../contract';
import { openTensorFile } from '../../../weights';
import { installComponent, installFiles, type StoreFolder } from '../../../weights/store';
import { type TestSource, testSource } from '../../../weights/store/testing/source';
import { goldens } from '../../../weights/testing/files';
import { modelFamilies } from '../..';
import { readModelConfig } from '../model-config';
import { type ConvertedComponent, componentRecipe } from '../recipes';
import { locateComponent } from '../wan-naming';
import { tinyFolder } from './model';

/** Files of the golden model as people host it. */
export const hosted = {
  transformer: 'formats/transformer-Q8_0.gguf',
  text_encoder: 'formats/text-encoder-Q8_0.gguf',
  vae: 'formats/vae-fp16-original-keys.safetensors',
} as const;

/** The golden model's own files, in f32. */
export const original = {
  transformer: 'model/transformer/diffusion_pytorch_model.safetensors',
  text_encoder: 'model/text_encoder/model.safetensors',
  vae: 'model/vae/diffusion_pytorch_model.safetensors',
} as const;

/** A file of the goldens as a source. */
async function goldenSource(path: string): Promise<TestSource> {
  return testSource(path, new Uint8Array(await readFile(goldens + path)), { chunk: 100_000 });
}

/** Installs one component of the golden model. */
export async function installGolden(
  folder: StoreFolder,
  component: ConvertedComponent,
  path: string,
  precision: Precision,
): Promise<StoredComponent> {
  const source = await goldenSource(path);
  const config = await readModelConfig(tinyFolder);
  return installComponent({
    folder: folder.folder(component),
    component,
    precision,
    recipe: componentRecipe(component, config, precision),
    sources: [source],
    tensors: locateComponent(component, [await openTensorFile(source)], config),
    signal: new AbortController().signal,
  });
}

/** Installs the whole golden model. */
export async function installGoldenModel(
  folder: StoreFolder,
  files: Readonly<Record<keyof typeof hosted, string>>,
  precision: Precision,
): Promise<void> {
  const entries = modelFamilies.wan22.installation.configurationFiles.map(async (path) => ({
    path,
    source: await goldenSource(`model/${path}`),
  }));
  await installFiles({
    folder: folder.folder('configuration'),
    component: 'configuration',
    files: await Promise.all(entries),
    signal: new AbortController().signal,
  });
  for (const component of ['transformer', 'text_encoder', 'vae'] as const) {
    await installGolden(folder, component, files[component], precision);
  }
}

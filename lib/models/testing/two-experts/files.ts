/** The model of the family as it lies on a hub: small random weights, and the text encoder of the goldens. */
import type { ModelManifest } from '../../../contract';
import { testManifest } from '../../../contract/testing/manifest';
import { gaussianNoise } from '../../../pipeline/noise';
import { type ModelFolder, openTensorFile } from '../../../weights';
import { localByteSource } from '../../../weights/hub';
import {
  installComponent,
  installFiles,
  modelFolderOf,
  type StoreFolder,
} from '../../../weights/store';
import { f32, safetensorsBytes } from '../../../weights/testing/bytes';
import { readTextEncoderConfig } from '../../umt5/text-encoder-config';
import { components, twoExpertsInstallation } from './install';
import { experts, expertTensors, imageEncoderTensors } from './network';

export const repository = 'kinora/two-experts';

const file = (path: string) => ({ repository, path });
const { configurationFiles } = twoExpertsInstallation;

export const twoExpertsManifest: ModelManifest = testManifest({
  id: 'two-experts',
  name: 'Two experts',
  family: 'two-experts',
  framesPerSecond: 16,
  frameStride: 8,
  maxClipFrames: 65,
  precision: 'int8',
  components: [
    { id: 'text_encoder', precisions: ['f32', 'int8'] },
    { id: 'high_noise', name: 'First expert', precisions: ['f32', 'int8'] },
    { id: 'low_noise', name: 'Second expert', precisions: ['f32', 'int8'] },
    { id: 'image_encoder' },
  ],
  sources: [
    { component: 'configuration', files: configurationFiles.map(file) },
    ...components.map((component) => ({ component, files: [file(`${component}.safetensors`)] })),
  ],
});

const sizes = { channels: 4, hidden: 32, boundary: 875 };

function random(shapes: ReadonlyMap<string, readonly number[]>, stream: number) {
  const entries = [...shapes].map(([name, shape], i) => {
    const count = shape.reduce((product, n) => product * n, 1);
    const noise = gaussianNoise({ seed: stream, stream: i, count });
    return [
      name,
      f32(
        shape,
        [...noise].map((value) => 0.3 * value),
      ),
    ] as const;
  });
  return safetensorsBytes(Object.fromEntries(entries));
}

/**
 * All files of the model.
 *
 * @param golden folder of the golden model
 */
export async function twoExpertsFiles(
  golden: ModelFolder,
): Promise<Map<string, Uint8Array<ArrayBuffer>>> {
  const text = (content: unknown) => new TextEncoder().encode(JSON.stringify(content));
  const files = new Map([
    ['kinora.json', text(twoExpertsManifest)],
    ['sizes.json', text(sizes)],
  ]);
  for (const path of configurationFiles.slice(1)) files.set(path, text(await golden.json(path)));
  const weights = await golden.open('text_encoder/model.safetensors');
  files.set('text_encoder.safetensors', new Uint8Array(await weights.read(0, weights.size)));
  const config = { ...sizes, text_encoder: await readTextEncoderConfig(golden) };
  for (const [stream, expert] of experts.entries()) {
    files.set(`${expert}.safetensors`, random(expertTensors(expert, config), 1 + stream));
  }
  files.set('image_encoder.safetensors', random(imageEncoderTensors(config), 9));
  return files;
}

/** A LoRA of rank 2 for one layer of an expert. */
export function twoExpertsLora(module = 'high_noise.output'): Uint8Array<ArrayBuffer> {
  const { hidden, channels } = sizes;
  return random(
    new Map([
      [`${module}.lora_A.weight`, [2, hidden]],
      [`${module}.lora_B.weight`, [channels, 2]],
    ]),
    7,
  );
}

/**
 * Installs the model as the library does after a download.
 *
 * @param folder of the model in the store
 * @param files as {@link twoExpertsFiles} gives them
 */
export async function installTwoExperts(
  folder: StoreFolder,
  files: ReadonlyMap<string, Uint8Array<ArrayBuffer>>,
): Promise<void> {
  const { signal } = new AbortController();
  const { precision } = twoExpertsManifest;
  const source = (path: string) => {
    const content = files.get(path);
    if (!content) throw new TypeError(`there is no file ${path}`);
    return localByteSource({ path, file: new File([content], path) });
  };
  await installFiles({
    folder: folder.folder('configuration'),
    component: 'configuration',
    files: configurationFiles.map((path) => ({ path, source: source(path) })),
    signal,
  });
  const plan = await twoExpertsInstallation.plan(modelFolderOf(folder.folder('configuration')));
  for (const component of components) {
    const weights = source(`${component}.safetensors`);
    const checked = plan.check(component, [await openTensorFile(weights)], precision);
    const own = folder.folder(component);
    const sources = [weights];
    await installComponent({ folder: own, component, precision, sources, signal, ...checked });
  }
  await folder.writeText('model.json', JSON.stringify(twoExpertsManifest));
}

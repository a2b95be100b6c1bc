import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ModelManifest } from '../../../contract';
import type { LocalHub } from '../../../weights/testing/hub/server';
import { publishTwins } from '../../../weights/testing/hub/twins';
import { modelFamilies } from '../..';

const { configurationFiles } = modelFamilies.wan22.installation;

const goldens = fileURLToPath(new URL('../goldens/tiny-wan22-ti2v/', import.meta.url));
const publicModels = fileURLToPath(new URL('../../../../public/models/', import.meta.url));

/** Where the golden model lies on the local hub, and the id under which it is added. */
export const goldenRepository = 'kinora/tiny-wan';
export const goldenId = 'golden';

/** The weights of the golden model in the forms in which the real ones are published. */
export const goldenWeights = {
  transformer: 'formats/transformer-Q8_0.gguf',
  text_encoder: 'formats/text-encoder-Q8_0.gguf',
  vae: 'formats/vae-fp16-original-keys.safetensors',
  tiny_decoder: 'formats/tiny-decoder-base.safetensors',
} as const;

export type GoldenWeights = keyof typeof goldenWeights;

/** Path of a component's weights inside the golden repository. */
export function goldenPath(component: GoldenWeights): string {
  return `weights/${path.basename(goldenWeights[component])}`;
}

/** The bytes of a file of the goldens. */
export async function goldenBytes(file: string): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await readFile(goldens + file));
}

/**
 * Puts the golden model on a hub: GGUF and original names, with a manifest of its own; and its checker.
 *
 * @param other what the manifest has in the place of what that of the model of tests says
 */
export async function publishGoldenModel(
  hub: LocalHub,
  other: Partial<Pick<ModelManifest, 'framesPerSecond' | 'maxClipFrames'>> = {},
): Promise<void> {
  const put = (file: string, bytes: Uint8Array | string) =>
    hub.repositories.put(goldenRepository, file, bytes);
  for (const file of configurationFiles) put(file, await goldenBytes(`model/${file}`));
  const components = Object.keys(goldenWeights) as GoldenWeights[];
  for (const component of components) {
    put(goldenPath(component), await goldenBytes(goldenWeights[component]));
  }
  const { base: _, ...tiny } = JSON.parse(await readFile(`${publicModels}tiny.json`, 'utf8'));
  const at = (file: string) => ({ repository: goldenRepository, path: file });
  const sources = [
    { component: 'configuration', files: configurationFiles.map(at) },
    ...components.map((component) => ({ component, files: [at(goldenPath(component))] })),
  ];
  const manifest = { ...tiny, ...other, id: goldenId, name: 'Golden', precision: 'int8', sources };
  put('kinora.json', JSON.stringify(manifest));
  await publishTwins(hub);
}

/** Holds the VAE's download up in its middle, until the hub is healed; its first range gets through. */
export function holdVae(hub: LocalHub): void {
  const fault = { kind: 'held', afterBytes: 60_000 } as const;
  const path = goldenPath('vae');
  hub.fail({ fault, path, host: 'storage', fromByte: 400_000, times: 1000 });
}

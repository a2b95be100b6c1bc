import type { ModelManifest } from '../../contract';
import {
  type Checkpoint,
  checkTensors,
  type ModelFolder,
  openCheckpoint,
  withAliases,
} from '../../weights';
import type { StoreFolder } from '../../weights/store';
import { installedConfiguration } from '../umt5/install';
import { textEncoderAliases, textEncoderTensors } from '../umt5/tensors';
import { bundledAdapters, storedAdapters } from '../wan/adapter';
import type { WanParts } from '../wan/model';
import {
  bundledTinyDecoder,
  checkSizes,
  invalidManifest,
  openConverted,
  requireInstalled,
  storedTinyDecoder,
} from '../wan/parts';
import { transformerTensors, vaeTensors } from '../wan/tensors';
import { type ModelConfig, readModelConfig } from './config';
import { type Expert, expertsOf } from './experts';
import { imageEncoderTensors, withoutPrefix } from './image-encoder/image-encoder';
import { loraArchitecture } from './lora';
import { componentRecipe, type WeightComponent, weightComponentsOf } from './recipes';

/** Its parts, opened and checked. */
export interface Wan14bParts extends WanParts {
  readonly config: ModelConfig;
  /** One of Wan2.1, two of A14B. */
  readonly experts: ReadonlyMap<Expert, Checkpoint>;
  /** Null where blocks attend to the text only. */
  readonly imageEncoder: Checkpoint | null;
}

/** A clip is conditioned by encoded pictures: latents of an earlier one cannot be held. */
function checkManifest(manifest: ModelManifest, config: ModelConfig): void {
  checkSizes(manifest, config);
  const { latents } = manifest.continuation;
  if (latents === 0) return;
  throw invalidManifest(`continuation.latents is ${latents}, but this model needs 0`);
}

/**
 * Opens a model folder and checks it against its own configuration, before any weight is read.
 *
 * @throws KinoraError `MODEL_FILE_MISSING`, `MODEL_FILE_INVALID`, `MODEL_FILE_TRUNCATED`, `MODEL_CONFIG_INVALID`,
 * `MODEL_MANIFEST_INVALID` when its sizes are none of this model, `TENSOR_MISSING`, `TENSOR_SHAPE`
 */
export async function openParts(
  manifest: ModelManifest,
  folder: ModelFolder,
): Promise<Wan14bParts> {
  const config = await readModelConfig(folder);
  checkManifest(manifest, config);
  const textEncoder = withAliases(await openCheckpoint(folder, 'text_encoder'), textEncoderAliases);
  const vae = await openCheckpoint(folder, 'vae');
  checkTensors(textEncoder, textEncoderTensors(config.text_encoder), 'text encoder');
  checkTensors(vae, vaeTensors(config.vae), 'VAE');
  const experts = new Map<Expert, Checkpoint>();
  for (const expert of expertsOf(config)) {
    const checkpoint = await openCheckpoint(folder, expert);
    checkTensors(checkpoint, transformerTensors(config.transformer), expert.replace('_', ' '));
    experts.set(expert, checkpoint);
  }
  let imageEncoder: Checkpoint | null = null;
  if (config.image_encoder) {
    const file = await openCheckpoint(folder, 'image_encoder');
    imageEncoder = withoutPrefix(file, config.image_encoder);
    checkTensors(imageEncoder, imageEncoderTensors(config.image_encoder), 'image encoder');
  }
  const { precision } = manifest;
  return {
    manifest,
    // A bundled model's weights come with this version of Kinora.
    fingerprint: JSON.stringify([manifest.id, precision]),
    folder,
    config,
    precision,
    packed: false,
    experts,
    textEncoder,
    vae,
    imageEncoder,
    tinyDecoder: await bundledTinyDecoder(folder, config.vae),
    adapters: await bundledAdapters(folder, loraArchitecture(config)),
  };
}

/**
 * Opens a model that was installed, and checks that it is what its configuration says.
 *
 * @param folder the model's folder in the store
 * @throws KinoraError as {@link openParts}, and `MODEL_NOT_INSTALLED`
 */
export async function openStoredParts(
  manifest: ModelManifest,
  folder: StoreFolder,
): Promise<Wan14bParts> {
  await requireInstalled(manifest, folder, ['configuration']);
  const files = await installedConfiguration(folder);
  const config = await readModelConfig(files);
  checkManifest(manifest, config);
  const components = weightComponentsOf(config);
  await requireInstalled(manifest, folder, components);
  const open = (component: WeightComponent) =>
    openConverted(folder, component, (of) => componentRecipe(component, config, of));
  const experts = new Map<Expert, Awaited<ReturnType<typeof open>>>();
  for (const expert of expertsOf(config)) experts.set(expert, await open(expert));
  const [textEncoder, vae] = [await open('text_encoder'), await open('vae')];
  const imageEncoder = config.image_encoder ? await open('image_encoder') : null;
  const read = [...experts.values(), textEncoder, vae, ...(imageEncoder ? [imageEncoder] : [])];
  const precision = experts.get('transformer')?.stored.precision ?? manifest.precision;
  const sources = read.map(({ stored }) => stored.sources);
  return {
    manifest,
    fingerprint: JSON.stringify([manifest.id, precision, sources]),
    folder: files,
    config,
    precision,
    packed: true,
    experts,
    textEncoder,
    vae,
    imageEncoder,
    tinyDecoder: await storedTinyDecoder(folder, config.vae),
    adapters: await storedAdapters(folder, loraArchitecture(config)),
  };
}

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
import { loraArchitectureOf } from '../wan/lora';
import type { WanParts } from '../wan/model';
import {
  bundledTinyDecoder,
  checkSizes,
  openConverted,
  requireInstalled,
  storedLightDecoder,
  storedTinyDecoder,
} from '../wan/parts';
import { transformerTensors, vaeTensors } from '../wan/tensors';
import { type ModelConfig, readModelConfig } from './config';
import { type ConvertedComponent, componentRecipe } from './recipes';

/** Its parts, opened and checked. */
export interface Wan22Parts extends WanParts {
  readonly config: ModelConfig;
  readonly transformer: Checkpoint;
}

/**
 * Opens a model folder and checks it against its own configuration, before any weight is read.
 *
 * @throws KinoraError `MODEL_FILE_MISSING`, `MODEL_FILE_INVALID`, `MODEL_FILE_TRUNCATED`,
 * `MODEL_CONFIG_INVALID`, `MODEL_MANIFEST_INVALID` when its sizes are none of this model,
 * `TENSOR_MISSING`, `TENSOR_SHAPE`
 */
export async function openParts(manifest: ModelManifest, folder: ModelFolder): Promise<Wan22Parts> {
  const config = await readModelConfig(folder);
  checkSizes(manifest, config);
  const [transformer, textEncoderFile, vae] = await Promise.all([
    openCheckpoint(folder, 'transformer'),
    openCheckpoint(folder, 'text_encoder'),
    openCheckpoint(folder, 'vae'),
  ]);
  const textEncoder = withAliases(textEncoderFile, textEncoderAliases);
  checkTensors(transformer, transformerTensors(config.transformer), 'transformer');
  checkTensors(textEncoder, textEncoderTensors(config.text_encoder), 'text encoder');
  checkTensors(vae, vaeTensors(config.vae), 'VAE');
  const tinyDecoder = await bundledTinyDecoder(folder, config.vae);
  const { precision } = manifest;
  const adapters = await bundledAdapters(folder, loraArchitectureOf(config.transformer));
  const weights = { transformer, textEncoder, vae, tinyDecoder, adapters };
  // A bundled model's weights come with this version of Kinora.
  const fingerprint = JSON.stringify([manifest.id, precision]);
  return { manifest, fingerprint, folder, config, precision, packed: false, ...weights };
}

/** What has to be in the store for a model to run. */
const storedComponents = ['configuration', 'transformer', 'text_encoder', 'vae'] as const;

/**
 * Opens a model that was installed, and checks that it is what its configuration says.
 *
 * @param folder the model's folder in the store
 * @throws KinoraError `MODEL_NOT_INSTALLED`, `MODEL_FILE_MISSING`, `MODEL_FILE_TRUNCATED`,
 * `MODEL_FILE_INVALID`, `MODEL_CONFIG_INVALID`, `MODEL_MANIFEST_INVALID`, `TENSOR_MISSING`,
 * `TENSOR_SHAPE`
 */
export async function openStoredParts(
  manifest: ModelManifest,
  folder: StoreFolder,
): Promise<Wan22Parts> {
  await requireInstalled(manifest, folder, storedComponents);
  const files = await installedConfiguration(folder);
  const config = await readModelConfig(files);
  checkSizes(manifest, config);
  const open = (component: ConvertedComponent) =>
    openConverted(folder, component, (of) => componentRecipe(component, config, of));
  const [transformer, textEncoder, vae] = await Promise.all([
    open('transformer'),
    open('text_encoder'),
    open('vae'),
  ]);
  const lightDecoder = await storedLightDecoder(folder, config.vae);
  const tinyDecoder = await storedTinyDecoder(folder, config.vae);
  const adapters = await storedAdapters(folder, loraArchitectureOf(config.transformer));
  const { precision } = transformer.stored;
  const sources = [transformer, textEncoder, vae].map(({ stored }) => stored.sources);
  return {
    manifest,
    fingerprint: JSON.stringify([manifest.id, precision, sources]),
    folder: files,
    config,
    precision,
    packed: true,
    transformer,
    textEncoder,
    vae,
    lightDecoder,
    tinyDecoder,
    adapters,
  };
}

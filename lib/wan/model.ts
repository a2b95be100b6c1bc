import { KinoraError, type ModelManifest, parseManifest } from '../contract';
import {
  type Checkpoint,
  checkTensors,
  httpFolder,
  type ModelFolder,
  openCheckpoint,
  withAliases,
} from '../weights';
import { type ModelConfig, readModelConfig } from './config';
import { textEncoderAliases, textEncoderTensors, transformerTensors, vaeTensors } from './tensors';

/** A model that was opened and checked: every tensor is there in its shape, none is read yet. */
export interface Model {
  readonly manifest: ModelManifest;
  readonly folder: ModelFolder;
  readonly config: ModelConfig;
  readonly transformer: Checkpoint;
  readonly textEncoder: Checkpoint;
  readonly vae: Checkpoint;
}

/**
 * Opens a model folder and checks it against its own configuration, before any weight is read.
 *
 * @throws KinoraError `MODEL_FILE_MISSING`, `MODEL_FILE_INVALID`, `MODEL_FILE_TRUNCATED`,
 * `MODEL_CONFIG_INVALID`, `TENSOR_MISSING`, `TENSOR_SHAPE`
 */
export async function openModel(manifest: ModelManifest, folder: ModelFolder): Promise<Model> {
  const config = await readModelConfig(folder);
  const [transformer, textEncoderFile, vae] = await Promise.all([
    openCheckpoint(folder, 'transformer'),
    openCheckpoint(folder, 'text_encoder'),
    openCheckpoint(folder, 'vae'),
  ]);
  const textEncoder = withAliases(textEncoderFile, textEncoderAliases);
  checkTensors(transformer, transformerTensors(config.transformer), 'transformer');
  checkTensors(textEncoder, textEncoderTensors(config.text_encoder), 'text encoder');
  checkTensors(vae, vaeTensors(config.vae), 'VAE');
  return { manifest, folder, config, transformer, textEncoder, vae };
}

/**
 * Opens a bundled model by the id of its manifest.
 *
 * @param base where `${id}.json` lies, with a trailing slash
 * @throws KinoraError `MODEL_UNKNOWN`, `MODEL_MANIFEST_INVALID`, and as {@link openModel}
 */
export async function openBundledModel(id: string, base: URL): Promise<Model> {
  const unknown = () => new KinoraError('MODEL_UNKNOWN', `There is no model "${id}".`);
  if (!/^[a-z0-9][a-z0-9._-]*$/.test(id)) throw unknown();
  const url = new URL(`${id}.json`, base);
  const response = await fetch(url);
  if (!response.ok) throw unknown();
  const manifest = parseManifest(await response.json());
  return openModel(manifest, httpFolder(new URL(manifest.base, url)));
}

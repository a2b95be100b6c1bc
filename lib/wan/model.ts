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
 * `MODEL_CONFIG_INVALID`, `MODEL_MANIFEST_INVALID` when its sizes are none of this model,
 * `TENSOR_MISSING`, `TENSOR_SHAPE`
 */
export async function openModel(manifest: ModelManifest, folder: ModelFolder): Promise<Model> {
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
  return { manifest, folder, config, transformer, textEncoder, vae };
}

/** Refuses native sizes that are not whole tokens, and clips that are not whole latent frames. */
function checkSizes(manifest: ModelManifest, { transformer, vae }: ModelConfig): void {
  const [, patchHeight, patchWidth] = transformer.patch_size;
  const unit = {
    width: vae.scale_factor_spatial * patchWidth,
    height: vae.scale_factor_spatial * patchHeight,
  };
  for (const [size, native] of Object.entries(manifest.nativeSizes)) {
    for (const side of ['width', 'height'] as const) {
      if (native[side] % unit[side] !== 0) {
        throw invalidManifest(
          `nativeSizes.${size}.${side} is ${native[side]}, but this model needs a multiple of ${unit[side]}`,
        );
      }
    }
  }
  const stride = vae.scale_factor_temporal;
  if ((manifest.maxClipFrames - 1) % stride !== 0) {
    throw invalidManifest(
      `maxClipFrames is ${manifest.maxClipFrames}, but this model needs one more than a multiple of ${stride}`,
    );
  }
}

function invalidManifest(what: string): KinoraError {
  return new KinoraError('MODEL_MANIFEST_INVALID', `The model manifest does not fit: ${what}.`);
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

import { KinoraError, type ModelManifest, type Precision } from '../../contract';
import {
  type Checkpoint,
  checkTensors,
  type ModelFolder,
  openCheckpoint,
  withAliases,
} from '../../weights';
import { openStoredComponent, type StoredCheckpoint, type StoreFolder } from '../../weights/store';
import { installedConfiguration } from '../umt5/install';
import { textEncoderAliases, textEncoderTensors } from '../umt5/tensors';
import { bundledAdapters, storedAdapters, type Wan22Adapters } from './adapter';
import { type ModelConfig, readModelConfig } from './config';
import { type ConvertedComponent, componentRecipe } from './recipes';
import { tinyDecoderTensors, transformerTensors, vaeTensors } from './tensors';

/** The parts of a model, opened and checked: every tensor is there in its shape, none is read yet. */
export interface Wan22Parts {
  readonly manifest: ModelManifest;
  /** Tells its weights from others'. */
  readonly fingerprint: string;
  /** Configuration and tokenizer; a bundled model's weights too. */
  readonly folder: ModelFolder;
  readonly config: ModelConfig;
  /** How the linear layers are to be held on the device. */
  readonly precision: Precision;
  /** Whether each layer is one contiguous read, already in its precision: then it can be streamed. */
  readonly packed: boolean;
  readonly transformer: Checkpoint;
  readonly textEncoder: Checkpoint;
  readonly vae: Checkpoint;
  /** The small decoder; null where the model comes without one. */
  readonly tinyDecoder: Checkpoint | null;
  /** The LoRAs that the model comes with, for its profiles. */
  readonly adapters: Wan22Adapters;
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
  const tinyDecoder = (await folder.exists(bundledFiles.tinyDecoder))
    ? await openCheckpoint(folder, 'tiny_decoder')
    : null;
  if (tinyDecoder) checkTinyDecoder(tinyDecoder, config);
  const { precision } = manifest;
  const adapters = await bundledAdapters(folder, config.transformer);
  const weights = { transformer, textEncoder, vae, tinyDecoder, adapters };
  // A bundled model's weights come with this version of Kinora.
  const fingerprint = JSON.stringify([manifest.id, precision]);
  return { manifest, fingerprint, folder, config, precision, packed: false, ...weights };
}

/** Where a bundled model has the parts that it can run without. */
const bundledFiles = {
  tinyDecoder: 'tiny_decoder/diffusion_pytorch_model.safetensors',
} as const;

/** @throws KinoraError `TENSOR_MISSING`, `TENSOR_SHAPE` */
function checkTinyDecoder(checkpoint: Checkpoint, { vae }: ModelConfig): void {
  const shapeOf = (name: string) => (checkpoint.has(name) ? checkpoint.shape(name) : undefined);
  checkTensors(checkpoint, tinyDecoderTensors(vae, shapeOf), 'tiny decoder');
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
  for (const component of storedComponents) {
    if (await folder.folder(component).open('manifest.json')) continue;
    const sentence = `The model "${manifest.name}" is not completely in this browser yet.`;
    throw new KinoraError('MODEL_NOT_INSTALLED', sentence);
  }
  const files = await installedConfiguration(folder);
  const config = await readModelConfig(files);
  checkSizes(manifest, config);
  const [transformer, textEncoder, vae] = await Promise.all([
    openConverted(folder, 'transformer', config),
    openConverted(folder, 'text_encoder', config),
    openConverted(folder, 'vae', config),
  ]);
  const tinyDecoder = await openStoredPart(folder, 'tiny_decoder');
  if (tinyDecoder) checkTinyDecoder(tinyDecoder, config);
  const adapters = await storedAdapters(folder, config.transformer);
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
    tinyDecoder,
    adapters,
  };
}

/** A part that a model can run without; null where it is not installed. */
async function openStoredPart(
  folder: StoreFolder,
  component: 'tiny_decoder',
): Promise<StoredCheckpoint | null> {
  const part = folder.folder(component);
  return (await part.open('manifest.json')) ? openStoredComponent(part) : null;
}

/** Opens a component of the store and checks it against what would be installed today. */
async function openConverted(
  folder: StoreFolder,
  component: ConvertedComponent,
  config: ModelConfig,
): Promise<StoredCheckpoint> {
  const checkpoint = await openStoredComponent(folder.folder(component));
  const { tensors } = componentRecipe(component, config, checkpoint.stored.precision);
  const shapes = tensors.map(
    ({ name, shape, reorder }) => [name, reorder?.shape ?? shape] as const,
  );
  checkTensors(checkpoint, new Map(shapes), component.replace('_', ' '));
  return checkpoint;
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
  if (manifest.frameStride % stride !== 0) {
    throw invalidManifest(
      `frameStride is ${manifest.frameStride}, but this model needs a multiple of ${stride}`,
    );
  }
}

function invalidManifest(what: string): KinoraError {
  return new KinoraError('MODEL_MANIFEST_INVALID', `The model manifest does not fit: ${what}.`);
}

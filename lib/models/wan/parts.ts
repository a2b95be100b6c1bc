import { KinoraError, type ModelManifest, type Precision } from '../../contract';
import {
  type Checkpoint,
  checkTensors,
  clocked,
  type ModelFolder,
  openTensorFiles,
} from '../../weights';
import { openStoredComponent, type StoredCheckpoint, type StoreFolder } from '../../weights/store';
import type { ComponentRecipe } from '../../weights/store/layout';
import type { TensorShapes } from '../layers/tensor-shapes';
import { installedConfiguration } from '../umt5/text-encoder-recipe';
import { bundledAdapters, storedAdapters, type WanAdapters } from './adapter';
import { type Expert, expertsOf } from './experts';
import { type WanKind, wanKinds } from './kinds';
import { loraArchitectureOf } from './lora';
import { type ModelConfig, readModelConfig } from './model-config';
import {
  type ConvertedComponent,
  componentRecipe,
  convertedComponents,
  lightDecoderRecipe,
} from './recipes';
import { openComponent, type WeightComponent } from './wan-naming';
import { decoderWidth, tinyDecoderTensors } from './wan-tensors';

/** The parts of a model, opened and checked: every tensor is there in its shape, none is read yet. */
export interface WanParts {
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
  /** The transformers. */
  readonly experts: ReadonlyMap<Expert, Checkpoint>;
  readonly textEncoder: Checkpoint;
  readonly vae: Checkpoint;
  /** Null where blocks attend to the text only. */
  readonly imageEncoder: Checkpoint | null;
  /** The small decoder; null where the model comes without one. */
  readonly tinyDecoder: Checkpoint | null;
  /** A decoder of the VAE's own layers, but narrower; absent or null where the model comes without one. */
  readonly lightDecoder?: Checkpoint | null;
  /** The LoRAs that the model comes with, for its profiles. */
  readonly adapters: WanAdapters;
}

/**
 * Opens a model folder and checks it against its own configuration, before any weight is read.
 *
 * @throws KinoraError `MODEL_FILE_MISSING`, `MODEL_FILE_INVALID`, `MODEL_FILE_TRUNCATED`, `MODEL_CONFIG_INVALID`,
 * `MODEL_MANIFEST_INVALID` when its sizes are none of this model, `TENSOR_MISSING`, `TENSOR_SHAPE`
 */
export async function openParts(manifest: ModelManifest, folder: ModelFolder): Promise<WanParts> {
  const config = await readChecked(manifest, folder);
  const open = async (component: WeightComponent) => {
    const files = await openTensorFiles(folder, component);
    return clocked(component, openComponent(component, files, config));
  };
  const hasTiny = await folder.exists('tiny_decoder/diffusion_pytorch_model.safetensors');
  const { precision } = manifest;
  return {
    manifest,
    // A bundled model's weights come with this version of Kinora.
    fingerprint: JSON.stringify([manifest.id, precision]),
    folder,
    config,
    precision,
    packed: false,
    ...(await openConvertedParts(config, open)),
    tinyDecoder: hasTiny ? await open('tiny_decoder') : null,
    adapters: await bundledAdapters(folder, loraArchitectureOf(config)),
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
): Promise<WanParts> {
  const isStored = async (part: string) => Boolean(await folder.folder(part).open('manifest.json'));
  const require = async (part: string) => {
    if (await isStored(part)) return;
    const sentence = `The model "${manifest.name}" is not completely in this browser yet.`;
    throw new KinoraError('MODEL_NOT_INSTALLED', sentence);
  };
  await require('configuration');
  const files = await installedConfiguration(folder);
  const config = await readChecked(manifest, files);
  for (const component of convertedComponents(config)) await require(component);
  const stored: StoredCheckpoint[] = [];
  const parts = await openConvertedParts(config, async (component) => {
    const checkpoint = await openChecked(folder, component, (of) =>
      recipeShapes(componentRecipe(component, config, of.stored.precision)),
    );
    stored.push(checkpoint);
    return checkpoint;
  });
  const precision = stored[0]?.stored.precision ?? manifest.precision;
  const sources = stored.map((checkpoint) => checkpoint.stored.sources);
  const optional = async (part: string, shapesOf: (checkpoint: Checkpoint) => TensorShapes) =>
    (await isStored(part)) ? openChecked(folder, part, shapesOf) : null;
  return {
    manifest,
    fingerprint: JSON.stringify([manifest.id, precision, sources]),
    folder: files,
    config,
    precision,
    packed: true,
    ...parts,
    lightDecoder: await optional('light_decoder', (of) =>
      recipeShapes(lightDecoderRecipe(config.vae, of.shape(decoderWidth)[0] ?? 0)),
    ),
    tinyDecoder: await optional('tiny_decoder', (of) =>
      tinyDecoderTensors(config.vae, (name) => (of.has(name) ? of.shape(name) : undefined)),
    ),
    adapters: await storedAdapters(folder, loraArchitectureOf(config)),
  };
}

/** The parts whose tensors the architecture names, in the order of {@link convertedComponents}. */
async function openConvertedParts(
  config: ModelConfig,
  open: (component: ConvertedComponent) => Promise<Checkpoint>,
) {
  const experts = new Map<Expert, Checkpoint>();
  for (const expert of expertsOf(config)) experts.set(expert, await open(expert));
  return {
    experts,
    textEncoder: await open('text_encoder'),
    vae: await open('vae'),
    imageEncoder: config.image_encoder ? await open('image_encoder') : null,
  };
}

/** Opens a component of the store and checks it against what would be installed today. */
async function openChecked(
  folder: StoreFolder,
  component: string,
  shapesOf: (checkpoint: StoredCheckpoint) => TensorShapes,
): Promise<StoredCheckpoint> {
  const checkpoint = await openStoredComponent(folder.folder(component));
  checkTensors(checkpoint, shapesOf(checkpoint), component.replace('_', ' '));
  return checkpoint;
}

const recipeShapes = ({ tensors }: ComponentRecipe): TensorShapes =>
  new Map(tensors.map(({ name, shape, reorder }) => [name, reorder?.shape ?? shape]));

/**
 * The configuration of a model whose manifest fits it: native sizes are whole tokens, clips whole latent frames, and
 * no clip whose pictures are encoded into channels holds latents of an earlier one.
 */
async function readChecked(manifest: ModelManifest, folder: ModelFolder): Promise<ModelConfig> {
  const kinds: Readonly<Record<string, WanKind>> = wanKinds;
  const config = await readModelConfig(folder, kinds[manifest.family]);
  const { kind, transformer, vae } = config;
  const [, patchHeight, patchWidth] = transformer.patch_size;
  const unit = {
    width: vae.scale_factor_spatial * patchWidth,
    height: vae.scale_factor_spatial * patchHeight,
  };
  const { profiles, nativeSizes, frameStride, continuation } = manifest;
  const misfit = (field: string, value: number, needed: string) => {
    const sentence = `The model manifest does not fit: ${field} is ${value}, but this model needs ${needed}.`;
    return new KinoraError('MODEL_MANIFEST_INVALID', sentence);
  };
  const sizes = [nativeSizes, ...Object.values(profiles).map((profile) => profile.nativeSizes)];
  for (const [size, native] of sizes.flatMap((each) => Object.entries(each ?? {}))) {
    for (const side of ['width', 'height'] as const) {
      if (native[side] % unit[side] === 0) continue;
      throw misfit(`nativeSizes.${size}.${side}`, native[side], `a multiple of ${unit[side]}`);
    }
  }
  const stride = vae.scale_factor_temporal;
  if (frameStride % stride !== 0)
    throw misfit('frameStride', frameStride, `a multiple of ${stride}`);
  if (kind.pictures === 'channels' && continuation.latents !== 0) {
    throw misfit('continuation.latents', continuation.latents, '0');
  }
  return config;
}

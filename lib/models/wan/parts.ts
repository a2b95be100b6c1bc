import { KinoraError, type ModelManifest } from '../../contract';
import { type Checkpoint, checkTensors, type ModelFolder, openCheckpoint } from '../../weights';
import { openStoredComponent, type StoredCheckpoint, type StoreFolder } from '../../weights/store';
import type { ComponentRecipe } from '../../weights/store/recipe';
import type { VaeConfig } from './config';
import type { WanConfig } from './model';
import { lightDecoderRecipe } from './recipes';
import { decoderWidth, tinyDecoderTensors } from './tensors';

/**
 * The tiny decoder of a bundled model; null where it has none.
 *
 * @throws KinoraError `TENSOR_MISSING`, `TENSOR_SHAPE`
 */
export async function bundledTinyDecoder(
  folder: ModelFolder,
  vae: VaeConfig,
): Promise<Checkpoint | null> {
  if (!(await folder.exists('tiny_decoder/diffusion_pytorch_model.safetensors'))) return null;
  return checkedTinyDecoder(await openCheckpoint(folder, 'tiny_decoder'), vae);
}

/** The light decoder of an installed model; null where it is not installed. @throws as {@link openConverted} */
export async function storedLightDecoder(
  folder: StoreFolder,
  vae: VaeConfig,
): Promise<Checkpoint | null> {
  if (!(await folder.folder('light_decoder').open('manifest.json'))) return null;
  return openConverted(folder, 'light_decoder', (_, stored) =>
    lightDecoderRecipe(vae, stored.shape(decoderWidth)[0] ?? 0),
  );
}

/** The tiny decoder of an installed model; null where it is not installed. @throws as {@link bundledTinyDecoder} */
export async function storedTinyDecoder(
  folder: StoreFolder,
  vae: VaeConfig,
): Promise<Checkpoint | null> {
  const part = folder.folder('tiny_decoder');
  if (!(await part.open('manifest.json'))) return null;
  return checkedTinyDecoder(await openStoredComponent(part), vae);
}

function checkedTinyDecoder(checkpoint: Checkpoint, vae: VaeConfig): Checkpoint {
  const shapeOf = (name: string) => (checkpoint.has(name) ? checkpoint.shape(name) : undefined);
  checkTensors(checkpoint, tinyDecoderTensors(vae, shapeOf), 'tiny decoder');
  return checkpoint;
}

/** @throws KinoraError `MODEL_NOT_INSTALLED` where a component is not in the store */
export async function requireInstalled(
  manifest: ModelManifest,
  folder: StoreFolder,
  components: readonly string[],
): Promise<void> {
  for (const component of components) {
    if (await folder.folder(component).open('manifest.json')) continue;
    const sentence = `The model "${manifest.name}" is not completely in this browser yet.`;
    throw new KinoraError('MODEL_NOT_INSTALLED', sentence);
  }
}

/**
 * Opens a component of the store and checks it against what would be installed today.
 *
 * @param recipeOf the recipe of today, by the precision that is stored and by what is there
 */
export async function openConverted(
  folder: StoreFolder,
  component: string,
  recipeOf: (
    precision: StoredCheckpoint['stored']['precision'],
    checkpoint: StoredCheckpoint,
  ) => ComponentRecipe,
): Promise<StoredCheckpoint> {
  const checkpoint = await openStoredComponent(folder.folder(component));
  const { tensors } = recipeOf(checkpoint.stored.precision, checkpoint);
  const shapes = tensors.map(
    ({ name, shape, reorder }) => [name, reorder?.shape ?? shape] as const,
  );
  checkTensors(checkpoint, new Map(shapes), component.replace('_', ' '));
  return checkpoint;
}

/** Refuses native sizes that are not whole tokens, and clips that are not whole latent frames. */
export function checkSizes(
  manifest: ModelManifest,
  { transformer, vae }: Pick<WanConfig, 'transformer' | 'vae'>,
): void {
  const [, patchHeight, patchWidth] = transformer.patch_size;
  const unit = {
    width: vae.scale_factor_spatial * patchWidth,
    height: vae.scale_factor_spatial * patchHeight,
  };
  const { profiles, nativeSizes } = manifest;
  const sizes = [nativeSizes, ...Object.values(profiles).map((profile) => profile.nativeSizes)];
  for (const [size, native] of sizes.flatMap((each) => Object.entries(each ?? {}))) {
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

/** @param what of the manifest does not fit, and what is expected */
export function invalidManifest(what: string): KinoraError {
  return new KinoraError('MODEL_MANIFEST_INVALID', `The model manifest does not fit: ${what}.`);
}

import type { Backend } from '../../gpu';
import type { Model } from './model';
import { type LatentSize, latentFrame } from './tokens';
import {
  type ClipDecoder,
  createTiledVaeDecoder,
  createVaeDecoder,
  type TileProgress,
  type Tiling,
} from './vae';

/** A clip to decode, and how. */
export interface ClipDecoding {
  readonly size: LatentSize;
  /** [C, F, h, w] in model space. */
  readonly latents: Float32Array;
  readonly tiles: Tiling | 'full';
  readonly signal: AbortSignal;
  /** Called with each frame of each tile, where there are tiles. */
  readonly onTile: (tile: TileProgress) => void;
}

/**
 * Decodes a clip with the model's VAE, whole frames or tiles; nothing stays on the device when it ends
 * or is left.
 *
 * @returns frames in order, planar RGB [3, height, width] in −1…1
 * @throws KinoraError what the decoders throw, and the signal's reason soon after it aborts
 */
export async function* decodeClip(
  backend: Backend,
  { config, vae }: Model,
  { size, latents, tiles, signal, onTile }: ClipDecoding,
): AsyncGenerator<Float32Array<ArrayBuffer>, void, undefined> {
  const options = { latentHeight: size.height, latentWidth: size.width, signal };
  const decoder: ClipDecoder =
    tiles === 'full'
      ? await createVaeDecoder(backend, config.vae, vae, options)
      : await createTiledVaeDecoder(backend, config.vae, vae, { ...options, tiles, onTile });
  try {
    const frames = Array.from({ length: size.frames }, (_, f) => latentFrame(latents, size, f));
    yield* decoder.decodeClip(frames);
  } finally {
    decoder.dispose();
  }
}

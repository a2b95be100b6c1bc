import { type Backend, Scope } from '../../../gpu';
import { MainMemoryExhausted } from '../../../pipeline/memory/main-memory';
import { decoderBlocks, type VaeConfig } from '../config';
import { ClipCanvas, canvasBytes } from './clip-canvas';
import type { ClipDecoder, LatentFrameSize, VaeDecoderOptions } from './decoder';
import { type LatentFeatures, runLatentPart } from './latent-part';
import { Workspace } from './layers';
import { NetworkLoader } from './network';
import { unfoldPixels } from './pixels';
import { type Tile, type Tiling, tileSize, tilesOf } from './tiles';
import { loadUpBlocks } from './up-blocks';
import { type VaeCheckpoint, VaeLoader } from './weights';

/** How far a decode in tiles is. */
export interface TileProgress {
  /** 1 … tiles. */
  readonly tile: number;
  readonly tiles: number;
  /** Frames of this tile so far. */
  readonly frame: number;
}

/** The size is the whole frame's. */
export interface TiledVaeDecoderOptions extends VaeDecoderOptions {
  readonly tiles: Tiling;
  /** Called with each frame of each tile: frames come out only with the last tile. */
  readonly onTile?: ((progress: TileProgress) => void) | undefined;
}

/**
 * Decodes a clip where whole frames do not fit. What works on latent positions, the attention among
 * it, sees whole frames, one layer at a time through the whole clip. The up blocks, which take the
 * memory, then see tiles, each through the whole clip before the next: so the partial sums of only
 * one tile are on the device. In between everything is kept on the CPU.
 *
 * Where tiles share {@link exactOverlap} positions the result is that of whole frames, up to rounding
 * to 16 bits; with less it differs near the seams, as a tile sees zeros beyond its edge.
 */
export class TiledVaeDecoder implements ClipDecoder {
  readonly height: number;
  readonly width: number;
  readonly range = [-1, 1] as const;
  readonly #tiles: readonly Tile[];
  readonly #tile: LatentFrameSize;
  /** What is on the device. */
  readonly #held = new Set<{ dispose(): void }>();

  constructor(
    readonly backend: Backend,
    readonly config: VaeConfig,
    readonly checkpoint: VaeCheckpoint,
    readonly options: TiledVaeDecoderOptions,
  ) {
    const { latentHeight, latentWidth, tiles } = options;
    const scale = config.scale_factor_spatial;
    this.height = latentHeight * scale;
    this.width = latentWidth * scale;
    this.#tiles = tilesOf(options, tiles, scale);
    this.#tile = tileSize(latentHeight, latentWidth, tiles);
  }

  async *decodeClip(
    latentFrames: readonly Float32Array[],
  ): AsyncGenerator<Float32Array<ArrayBuffer>, void, undefined> {
    const { backend, config, checkpoint, options } = this;
    this.dispose();
    try {
      const features = await runLatentPart(backend, config, checkpoint, latentFrames, options);
      // The runtime's buffers of one part are of no use to the other.
      await backend.releaseSessions();
      yield* this.#decodeTiles(features);
    } catch (error) {
      // So browsers say that they have no memory for an array.
      if (!(error instanceof RangeError)) throw error;
      const { latentHeight, latentWidth } = options;
      const bytes = tiledClipBytes(config, latentHeight, latentWidth, latentFrames.length);
      throw new MainMemoryExhausted(bytes, error);
    }
  }

  async *#decodeTiles(
    features: LatentFeatures,
  ): AsyncGenerator<Float32Array<ArrayBuffer>, void, undefined> {
    const { backend, config, checkpoint, options } = this;
    const workspace = new Workspace(backend, options.bandBytes);
    const scope = new Scope(backend);
    this.#held.add(workspace).add(scope);
    try {
      const parts = new NetworkLoader(workspace, new VaeLoader(scope, checkpoint, options), 3);
      const upBlocks = await loadUpBlocks(parts, config, { ...options, firstResnets: false });
      const { scale_factor_spatial: scale } = config;
      const canvas = new ClipCanvas(this.height, this.width, scale, this.range);
      const tiles = this.#tiles.length;
      for (const [place, tile] of this.#tiles.entries()) {
        let index = 0;
        for (const [f, main] of features.main.entries()) {
          const x = this.#upload(workspace, main, tile);
          const input = this.#upload(workspace, features.middle[f] ?? main, tile);
          for await (const folded of upBlocks.framesOf(x, input)) {
            canvas.add(index, tile, await this.#pixels(workspace, folded));
            options.onTile?.({ tile: place + 1, tiles, frame: index + 1 });
            if (place === tiles - 1) yield canvas.take(index);
            index += 1;
          }
        }
        upBlocks.reset();
        for (const convolution of parts.convolutions) convolution.reset();
        workspace.caches.dispose();
      }
    } finally {
      this.dispose();
    }
  }

  /** A tile of a frame [h·w, C] in a tensor of the scratch pool, [1, rows, columns, C]. */
  #upload(workspace: Workspace, frame: Float32Array, { top, left }: Tile) {
    const { latentHeight: rows, latentWidth: columns } = this.#tile;
    const { latentHeight, latentWidth: width } = this.options;
    const channels = frame.length / (latentHeight * width);
    const part = new Float32Array(rows * columns * channels);
    for (let y = 0; y < rows; y++) {
      const start = ((top + y) * width + left) * channels;
      part.set(frame.subarray(start, start + columns * channels), y * columns * channels);
    }
    const image = workspace.image(rows, columns, channels);
    this.backend.write(image, part);
    return image;
  }

  async #pixels(workspace: Workspace, folded: ReturnType<Workspace['image']>) {
    const { latentHeight, latentWidth } = this.#tile;
    const { patch_size: patch, scale_factor_spatial: scale } = this.config;
    const data = await this.backend.read(folded);
    workspace.scratch.give(folded);
    const [height, width] = [latentHeight * scale, latentWidth * scale];
    return unfoldPixels(data, height, width, patch, 'column-row', this.range);
  }

  dispose(): void {
    for (const held of this.#held) held.dispose();
    this.#held.clear();
  }
}

/**
 * Prepares a decode in tiles. Weights are loaded while a clip is decoded, and freed with its end.
 *
 * @param checkpoint the VAE's tensors, by diffusers' names; read in f32
 * @throws TypeError for a grid that the frame cannot be cut into; its clips throw
 * `MainMemoryExhausted`, and `LATENTS_NOT_FINITE` for a frame that has invalid numbers
 */
export async function createTiledVaeDecoder(
  backend: Backend,
  config: VaeConfig,
  checkpoint: VaeCheckpoint,
  options: TiledVaeDecoderOptions,
): Promise<TiledVaeDecoder> {
  return new TiledVaeDecoder(backend, config, checkpoint, options);
}

/**
 * CPU bytes that a tiled decode of a clip keeps: 121 frames of 1280×704 take 1.55 GB, 0.89 of them
 * for what the tiles are made from.
 *
 * @param latentFrames frames of the latents
 */
export function tiledClipBytes(
  config: VaeConfig,
  latentHeight: number,
  latentWidth: number,
  latentFrames: number,
): number {
  const { scale_factor_spatial: scale, scale_factor_temporal: stride } = config;
  const frames = 1 + (latentFrames - 1) * stride;
  const top = decoderBlocks(config)[0]?.in_dim ?? 0;
  const features = 2 * latentFrames * latentHeight * latentWidth * top * 4;
  return features + canvasBytes(latentHeight * scale, latentWidth * scale, frames);
}

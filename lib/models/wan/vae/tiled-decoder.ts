import { at } from '../../../contract';
import type { Backend, ImageExecutor } from '../../../gpu';
import type { Graph } from '../../../graph';
import { MainMemoryExhausted } from '../../../pipeline/memory/fit';
import type { Tiling } from '../../../pipeline/memory/memory-plan';
import type { TileProgress } from '../../../pipeline/model';
import { decoderBlocks, type VaeConfig } from '../config-schemas';
import {
  type ClipDecoder,
  type ClipGraphs,
  clipResults,
  denormalised,
  type LatentFrameSize,
  type VaeDecoderOptions,
} from './decoder';
import { unfoldPixels } from './pixels';
import { ClipCanvas, canvasBytes, type Tile, tileSize, tilesOf } from './tiles';
import { openImages } from './vae-executor';
import { decoderTile, latentGraphs } from './vae-network';
import type { VaeCheckpoint } from './vae-weights';

/** Latent sizes are those of the whole frame. */
export interface TiledVaeDecoderOptions extends VaeDecoderOptions {
  readonly tiles: Tiling;
  /** Called with each frame of each tile. Frames are complete only with the last tile. */
  readonly onTile?: ((progress: TileProgress) => void) | undefined;
}

/**
 * Decodes a clip where whole frames do not fit. The layers of latent size, attention among them, run on whole
 * frames: one group of layers through the whole clip, then the next. The up blocks, which need most memory, then run on
 * tiles: one tile through the whole clip, then the next, so that what layers know of the past is on the device for one tile.
 * Main memory keeps the results in between.
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
  /** While tiles are decoded. */
  #images: ImageExecutor | undefined;

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
      // Buffers of the runtime have other sizes in the second part.
      await backend.releaseSessions();
      yield* this.#decodeTiles(features);
    } catch (error) {
      // Browsers throw a RangeError when there is no memory for an array.
      if (!(error instanceof RangeError)) throw error;
      const { latentHeight, latentWidth } = options;
      const bytes = tiledClipBytes(config, latentHeight, latentWidth, latentFrames.length);
      throw new MainMemoryExhausted(bytes, error);
    }
  }

  async *#decodeTiles(
    features: readonly LatentFeatures[],
  ): AsyncGenerator<Float32Array<ArrayBuffer>, void, undefined> {
    const { backend, config, checkpoint, options } = this;
    const scale = config.scale_factor_spatial;
    const graphs = tileGraphs(config, this.#tile);
    const images = await openImages(backend, graphs, checkpoint, options);
    this.#images = images;
    try {
      const canvas = new ClipCanvas(this.height, this.width, scale, this.range);
      const [height, width] = [this.#tile.latentHeight * scale, this.#tile.latentWidth * scale];
      const tiles = this.#tiles.length;
      for (const [place, tile] of this.#tiles.entries()) {
        let index = 0;
        for await (const folded of clipResults(images, graphs, this.#cut(features, tile))) {
          const patch = config.patch_size;
          const pixels = unfoldPixels(folded, height, width, patch, 'column-row', this.range);
          canvas.add(index, tile, pixels);
          options.onTile?.({ tile: place + 1, tiles, frame: index + 1 });
          if (place === tiles - 1) yield canvas.take(index);
          index += 1;
        }
      }
    } finally {
      this.dispose();
    }
  }

  /** A tile of the clip's features, one latent frame after another. */
  *#cut(features: readonly LatentFeatures[], tile: Tile) {
    for (const { main, middle } of features) {
      yield { main: this.#cutFrame(main, tile), middle: this.#cutFrame(middle, tile) };
    }
  }

  /** Positions of a tile in a frame [h·w, C], as [rows·columns, C]. */
  #cutFrame(frame: Float32Array, { top, left }: Tile): Float32Array {
    const { latentHeight: rows, latentWidth: columns } = this.#tile;
    const { latentHeight, latentWidth: width } = this.options;
    const channels = frame.length / (latentHeight * width);
    const part = new Float32Array(rows * columns * channels);
    for (let y = 0; y < rows; y++) {
      const start = ((top + y) * width + left) * channels;
      part.set(frame.subarray(start, start + columns * channels), y * columns * channels);
    }
    return part;
  }

  dispose(): void {
    this.#images?.dispose();
    this.#images = undefined;
  }
}

/** The graphs of a tile's latent frames. */
export function tileGraphs(
  config: VaeConfig,
  { latentHeight, latentWidth }: LatentFrameSize,
): ClipGraphs {
  return [
    decoderTile(config, latentHeight, latentWidth, true),
    decoderTile(config, latentHeight, latentWidth, false),
  ];
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
  const { in_dim: top } = at(decoderBlocks(config), 0);
  const features = 2 * latentFrames * latentHeight * latentWidth * top * 4;
  return features + canvasBytes(latentHeight * scale, latentWidth * scale, frames);
}

/** What the decoder makes of one latent frame before it upsamples, [h·w, C] each. */
interface LatentFeatures {
  /** From the middle block, where a shortcut of the first level starts. */
  readonly middle: Float32Array;
  /** From the first level's residual blocks behind it. */
  readonly main: Float32Array;
}

/**
 * Runs the part of the decoder that works on latent positions: one group of layers through the whole clip, then
 * the next, so that the weights and the past of one group are on the device at a time.
 * Frees everything when it returns or throws.
 */
async function runLatentPart(
  backend: Backend,
  config: VaeConfig,
  checkpoint: VaeCheckpoint,
  latentFrames: readonly Float32Array[],
  options: VaeDecoderOptions,
): Promise<LatentFeatures[]> {
  const { latentHeight, latentWidth } = options;
  const graphs = latentGraphs(config, latentHeight, latentWidth);
  const frames = latentFrames.map((frame) => denormalised(frame, config));

  /** Replaces each frame by the graph's result, so that main memory has one clip and a frame. */
  async function through(graph: Graph): Promise<void> {
    const images = await openImages(backend, [graph], checkpoint, options);
    try {
      for (const [f, x] of frames.entries()) {
        for await (const y of images.frames(graph, { x })) frames[f] = y;
      }
    } finally {
      images.dispose();
    }
  }

  for (const graph of graphs.middle) await through(graph);
  const middle = [...frames];
  for (const graph of graphs.main) await through(graph);
  return frames.map((main, f) => ({ main, middle: at(middle, f) }));
}

import { at } from '../../../contract';
import type { Backend, ImageExecutor } from '../../../gpu';
import { type Graph, imageFlops, matchImages } from '../../../graph';
import type { VaeConfig } from '../config-schemas';
import { channelsLast, type FoldOrder, unfoldPixels } from './pixels';
import { openImages } from './vae-executor';
import { decoderFrame } from './vae-network';
import type { VaeCheckpoint, VaeLoadOptions } from './vae-weights';

/** Size of the latents that a decoder takes. */
export interface LatentFrameSize {
  readonly latentHeight: number;
  readonly latentWidth: number;
}

/** Turns the latents of a whole clip into its frames, be it in tiles or not. */
export interface ClipDecoder {
  /** Size of the pixel frames. */
  readonly height: number;
  readonly width: number;
  /** The values that stand for black and white; every value lies between them. */
  readonly range: readonly [black: number, white: number];
  /**
   * Decodes a clip from its start, whatever was left half decoded.
   *
   * @param latentFrames the clip's latents in order, [z, h, w] each, in model space (as the transformer has it)
   * @returns its frames in order, planar RGB [3, height, width], one by one
   * @throws the signal's reason soon after it aborts
   */
  decodeClip(
    latentFrames: readonly Float32Array[],
  ): AsyncGenerator<Float32Array<ArrayBuffer>, void, undefined>;
  /** Frees everything; also while a frame is half decoded. */
  dispose(): void;
}

/** Size of the latent frames, and how the decoder is loaded. */
export type VaeDecoderOptions = LatentFrameSize & VaeLoadOptions;

/** The graph of a clip's first latent frame, and that of all later ones. */
export type ClipGraphs = readonly [first: Graph, later: Graph];

/**
 * Runs the latent frames of a clip through their graphs, from its start.
 *
 * @param clip inputs of the graphs, by name, one latent frame after another
 * @returns the results of all graphs in order
 */
export async function* clipResults(
  images: ImageExecutor,
  [first, later]: ClipGraphs,
  clip: Iterable<Readonly<Record<string, Float32Array>>>,
): AsyncGenerator<Float32Array<ArrayBuffer>, void, undefined> {
  images.reset();
  let graph = first;
  for (const inputs of clip) {
    yield* images.frames(graph, inputs);
    graph = later;
  }
}

/** What a decode of so many latent frames takes: floating-point operations, and graphs that the runtime runs. */
export function decodeCost([first, later]: ClipGraphs, frames: number) {
  const total = (of: (graph: Graph) => number) => of(first) + (frames - 1) * of(later);
  return { flops: total(imageFlops), calls: total((graph) => matchImages(graph).length) };
}

/** Graphs that decode latent frames, and what leads into them and out of them. */
export interface DecoderNetwork {
  /** Input: latent [h, w, z]. Outputs: frames with blocks of p×p pixels folded into channels. */
  readonly graphs: ClipGraphs;
  /** The input for a latent frame. */
  readonly input: (latentFrame: Float32Array) => Float32Array;
  /** Pixels of a latent position along a side, and p. */
  readonly scale: number;
  readonly patch: number;
  readonly order: FoldOrder;
  readonly range: readonly [black: number, white: number];
}

/**
 * A decoder of whole frames, streaming: latent frames go in one by one and pixel frames come out one by one, exactly
 * as if the whole clip were decoded at once.
 */
export class FrameDecoder implements ClipDecoder {
  readonly height: number;
  readonly width: number;

  constructor(
    readonly network: DecoderNetwork,
    { latentHeight, latentWidth }: LatentFrameSize,
    readonly images: ImageExecutor,
  ) {
    this.height = latentHeight * network.scale;
    this.width = latentWidth * network.scale;
  }

  get range() {
    return this.network.range;
  }

  async *decodeClip(
    latentFrames: readonly Float32Array[],
  ): AsyncGenerator<Float32Array<ArrayBuffer>, void, undefined> {
    const { height, width, images, network } = this;
    const { graphs, input, patch, order, range } = network;
    const clip = latentFrames.map((frame) => ({ latent: input(frame) }));
    for await (const folded of clipResults(images, graphs, clip)) {
      yield unfoldPixels(folded, height, width, patch, order, range);
    }
  }

  dispose(): void {
    this.images.dispose();
  }
}

/** The graphs of a clip's latent frames. */
export function decoderGraphs(
  config: VaeConfig,
  { latentHeight, latentWidth }: LatentFrameSize,
): ClipGraphs {
  return [
    decoderFrame(config, latentHeight, latentWidth, true),
    decoderFrame(config, latentHeight, latentWidth, false),
  ];
}

/**
 * Loads the VAE's decoder (README).
 *
 * @param checkpoint the VAE's tensors, by diffusers' names; read in f32
 * @throws KinoraError `TENSOR_MISSING`, `OUT_OF_MEMORY`; nothing stays allocated then
 */
export async function createVaeDecoder(
  backend: Backend,
  config: VaeConfig,
  checkpoint: VaeCheckpoint,
  options: VaeDecoderOptions,
): Promise<ClipDecoder> {
  const graphs = decoderGraphs(config, options);
  const network = {
    graphs,
    input: (latentFrame: Float32Array) => denormalised(latentFrame, config),
    scale: config.scale_factor_spatial,
    patch: config.patch_size,
    order: 'column-row',
    range: [-1, 1],
  } as const;
  return new FrameDecoder(network, options, await openImages(backend, graphs, checkpoint, options));
}

/** A latent frame [z, h, w] of the model's space as [h·w, z] in the VAE's: z·std + mean. */
export function denormalised(latentFrame: Float32Array, config: VaeConfig): Float32Array {
  const { latents_mean: mean, latents_std: std, z_dim: z } = config;
  return channelsLast(
    latentFrame,
    (c) => at(std, c),
    (c) => at(mean, c),
    z,
  );
}

import { at } from '../../../contract';
import type { Backend, ImageExecutor } from '../../../gpu';
import type { VaeConfig } from '../config';
import { openImages } from './images';
import { decoderFrame } from './network';
import { channelsLast, unfoldPixels } from './pixels';
import type { VaeCheckpoint, VaeLoadOptions } from './weights';

/** Size of the latents that a decoder takes. */
export interface LatentFrameSize {
  readonly latentHeight: number;
  readonly latentWidth: number;
}

/** What decoders have in common. */
interface Decoder {
  /** Size of the pixel frames. */
  readonly height: number;
  readonly width: number;
  /** The values that stand for black and white; every value lies between them. */
  readonly range: readonly [black: number, white: number];
  /** Frees everything; also while a frame is half decoded. */
  dispose(): void;
}

/** Turns the latents of a whole clip into its frames, be it in tiles or not. */
export interface ClipDecoder extends Decoder {
  /**
   * Decodes a clip from its start.
   *
   * @param latentFrames the clip's latents in order, [z, h, w] each, in model space
   * @returns its frames in order, planar RGB [3, height, width]
   * @throws the signal's reason soon after it aborts
   */
  decodeClip(
    latentFrames: readonly Float32Array[],
  ): AsyncGenerator<Float32Array<ArrayBuffer>, void, undefined>;
}

/** Turns latent frames into pixel frames, one after another. */
export interface FrameDecoder extends Decoder {
  /**
   * Decodes the next latent frame of the clip. The first gives one pixel frame, each later one four
   * (in general the VAE's temporal factor). The frames come one by one, so that no more than one is in
   * memory. The generator must be run to its end before the next call.
   *
   * @param latentFrame [z, h, w] in model space (as the transformer has it)
   * @returns planar RGB [3, height, width]
   */
  decode(latentFrame: Float32Array): AsyncGenerator<Float32Array<ArrayBuffer>, void, undefined>;
  /** Starts a new clip: forgets all frames so far. */
  reset(): void;
}

/** Size of the latent frames, and how the decoder is loaded. */
export type VaeDecoderOptions = LatentFrameSize & VaeLoadOptions;

/**
 * The VAE's decoder (README), streaming: latent frames go in one by one and pixel frames come
 * out one by one, exactly as if the whole clip were decoded at once (`network.ts`).
 */
export class VaeDecoder implements FrameDecoder, ClipDecoder {
  readonly height: number;
  readonly width: number;
  readonly range = [-1, 1] as const;
  /** A frame is half decoded. */
  #open = false;
  /** The next latent frame is the first of its clip. */
  #first = true;

  constructor(
    readonly config: VaeConfig,
    readonly size: LatentFrameSize,
    readonly images: ImageExecutor,
  ) {
    this.height = size.latentHeight * config.scale_factor_spatial;
    this.width = size.latentWidth * config.scale_factor_spatial;
  }

  async *decode(
    latentFrame: Float32Array,
  ): AsyncGenerator<Float32Array<ArrayBuffer>, void, undefined> {
    const { height, width, config, range } = this;
    for await (const folded of this.foldedFrames(latentFrame)) {
      yield unfoldPixels(folded, height, width, config.patch_size, 'column-row', range);
    }
  }

  /**
   * {@link decode} up to the last convolution: everything that the device does for a latent frame.
   *
   * @returns frames [height/p, width/p, 3·p²] in order, with blocks of p×p pixels folded into channels
   */
  async *foldedFrames(
    latentFrame: Float32Array,
  ): AsyncGenerator<Float32Array<ArrayBuffer>, void, undefined> {
    const { config, size, images } = this;
    if (this.#open) throw new TypeError('the last latent frame is not decoded to its end');
    this.#open = true;
    const latent = denormalised(latentFrame, config);
    yield* images.frames(frameGraph(config, size, this.#first), { latent });
    this.#first = false;
    this.#open = false;
  }

  async *decodeClip(
    latentFrames: readonly Float32Array[],
  ): AsyncGenerator<Float32Array<ArrayBuffer>, void, undefined> {
    this.reset();
    for (const latentFrame of latentFrames) yield* this.decode(latentFrame);
  }

  reset(): void {
    this.#open = false;
    this.#first = true;
    this.images.reset();
  }

  dispose(): void {
    this.images.dispose();
  }
}

function frameGraph(
  config: VaeConfig,
  { latentHeight, latentWidth }: LatentFrameSize,
  first: boolean,
) {
  return decoderFrame(config, latentHeight, latentWidth, first);
}

/** The graphs of a clip's latent frames in their order. */
export function decoderGraphs(config: VaeConfig, size: LatentFrameSize) {
  return [frameGraph(config, size, true), frameGraph(config, size, false)];
}

/**
 * Loads the decoder.
 *
 * @param checkpoint the VAE's tensors, by diffusers' names; read in f32
 * @throws KinoraError `TENSOR_MISSING`, `OUT_OF_MEMORY`; nothing stays allocated then
 */
export async function createVaeDecoder(
  backend: Backend,
  config: VaeConfig,
  checkpoint: VaeCheckpoint,
  options: VaeDecoderOptions,
): Promise<VaeDecoder> {
  const graphs = decoderGraphs(config, options);
  return new VaeDecoder(config, options, await openImages(backend, graphs, checkpoint, options));
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

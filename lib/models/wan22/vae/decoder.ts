import { at } from '../../../contract';
import { type Backend, type DeviceTensor, Scope } from '../../../gpu';
import { decoderBlocks, type VaeConfig } from '../config';
import { openLoader } from './kernel-network';
import { type ConvolutionLayer, Workspace } from './layers';
import { loadMiddle } from './network';
import { channelsLast, unfoldPixels } from './pixels';
import { loadUpBlocks, type UpBlocks } from './up-blocks';
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
export interface VaeDecoderOptions extends LatentFrameSize, VaeLoadOptions {
  /** See `bandsOf`; for tests. */
  readonly bandBytes?: number;
}

interface Network {
  readonly postQuant: ConvolutionLayer;
  readonly convIn: ConvolutionLayer;
  readonly middle: Awaited<ReturnType<typeof loadMiddle>>;
  readonly upBlocks: UpBlocks;
}

/**
 * The VAE's decoder (README), streaming: latent frames go in one by one and pixel frames come
 * out one by one, exactly as if the whole clip were decoded at once. Frames pass alone through every
 * level; what a layer must know of the past it keeps. Layers are the runtime's, or kernels of our own
 * where the backend has chosen a convolution.
 */
export class VaeDecoder implements FrameDecoder, ClipDecoder {
  readonly height: number;
  readonly width: number;
  readonly range = [-1, 1] as const;
  /** A frame is half decoded. */
  #open = false;
  readonly #latent: DeviceTensor<'float32'>;

  constructor(
    readonly config: VaeConfig,
    readonly size: LatentFrameSize,
    readonly workspace: Workspace,
    readonly network: Network,
    readonly convolutions: readonly ConvolutionLayer[],
    readonly weights: Scope,
  ) {
    this.height = size.latentHeight * config.scale_factor_spatial;
    this.width = size.latentWidth * config.scale_factor_spatial;
    this.#latent = weights.float32(
      [1, size.latentHeight, size.latentWidth, config.z_dim],
      'activations',
    );
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
    const { config, network, workspace } = this;
    const { scratch, backend } = workspace;
    if (this.#open) throw new TypeError('the last latent frame is not decoded to its end');
    backend.write(this.#latent, denormalised(latentFrame, config));
    this.#open = true;

    const quantised = await network.postQuant.step(this.#latent);
    let x = await network.convIn.step(quantised);
    scratch.give(quantised);
    for (const layer of network.middle) x = await layer.step(x, false);
    for await (const folded of network.upBlocks.frames(x)) {
      const data = await backend.read(folded);
      scratch.give(folded);
      yield data;
    }
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
    this.network.upBlocks.reset();
    for (const convolution of this.convolutions) convolution.reset();
    // What layers know of the past is made anew, and therefore zero, with the next clip's first frame.
    this.workspace.caches.dispose();
    this.workspace.scratch.reclaim();
  }

  dispose(): void {
    this.workspace.dispose();
    this.weights.dispose();
  }
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
  const scope = new Scope(backend);
  try {
    const workspace = new Workspace(backend, options.bandBytes);
    const parts = await openLoader(workspace, scope, config, checkpoint, options);
    const { in_dim: top } = at(decoderBlocks(config), 0);
    const network = {
      postQuant: await parts.pointwise('post_quant_conv', config.z_dim, config.z_dim),
      convIn: await parts.convolution('decoder.conv_in', config.z_dim, top),
      middle: await loadMiddle(parts, 'decoder.mid_block', top),
      upBlocks: await loadUpBlocks(parts, config, { ...options, firstResnets: true }),
    };
    return new VaeDecoder(config, options, workspace, network, parts.convolutions, scope);
  } catch (error) {
    scope.dispose();
    throw error;
  }
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

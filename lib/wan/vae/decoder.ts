import { type Backend, type DeviceTensor, Scope } from '../../gpu';
import { decoderBlocks, type VaeBlock, type VaeConfig } from '../config';
import type { Image } from './bands';
import { type FrameConvolution, type ResidualBlock, Upsample, Workspace } from './layers';
import { NetworkLoader } from './network';
import { channelsLast, unfoldPixels } from './pixels';
import { type VaeCheckpoint, VaeLoader, type VaeLoadOptions } from './weights';

/** Size of the latents that a decoder takes. */
export interface LatentFrameSize {
  readonly latentHeight: number;
  readonly latentWidth: number;
}

/** Turns latent frames into pixel frames, one after another. */
export interface FrameDecoder {
  /** Size of the pixel frames. */
  readonly height: number;
  readonly width: number;
  /** The values that stand for black and white; every value lies between them. */
  readonly range: readonly [black: number, white: number];
  /**
   * Decodes the next latent frame of the clip. The first gives one pixel frame, each later one four
   * (in general the VAE's temporal factor). The frames come one by one, so that no more than one is
   * held. The generator must be run to its end before the next call.
   *
   * @param latentFrame [z, h, w] in model space (as the transformer has it)
   * @returns planar RGB [3, height, width]
   */
  decode(latentFrame: Float32Array): AsyncGenerator<Float32Array<ArrayBuffer>, void, undefined>;
  /** Starts a new clip: forgets all frames so far. */
  reset(): void;
  /** Frees everything; also while a frame is half decoded. */
  dispose(): void;
}

export interface VaeDecoderOptions extends LatentFrameSize, VaeLoadOptions {
  /** See `bandsOf`; for tests. */
  readonly bandBytes?: number;
}

/** A level of the decoder with its weights. */
interface UpBlock {
  readonly resnets: readonly ResidualBlock[];
  readonly upsample: Upsample | null;
  /** The time convolution's halves, for the earlier and the later of two frames. */
  readonly time: readonly [FrameConvolution, FrameConvolution] | null;
}

interface Network {
  readonly postQuant: FrameConvolution;
  readonly convIn: FrameConvolution;
  readonly middle: Awaited<ReturnType<NetworkLoader['middle']>>;
  readonly blocks: readonly UpBlock[];
  readonly convOut: FrameConvolution;
}

/**
 * The VAE's decoder (reference §5.3), streaming: latent frames go in one by one and pixel frames come
 * out one by one, exactly as if the whole clip were decoded at once. Frames pass alone through every
 * level; what a convolution must know of the past are its partial sums.
 */
export class VaeDecoder implements FrameDecoder {
  readonly height: number;
  readonly width: number;
  readonly range = [-1, 1] as const;
  /** Whether the next latent frame is the first of its clip. */
  #first = true;
  /** A frame is half decoded. */
  #open = false;
  readonly #latent: DeviceTensor<'float32'>;

  constructor(
    readonly config: VaeConfig,
    readonly size: LatentFrameSize,
    readonly workspace: Workspace,
    readonly network: Network,
    readonly convolutions: readonly FrameConvolution[],
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
    const { config, network, workspace } = this;
    const { scratch, backend } = workspace;
    if (this.#open) throw new TypeError('the last latent frame is not decoded to its end');
    // VAE space: z·std + mean.
    const { latents_mean: mean, latents_std: std, z_dim: z } = config;
    const latent = channelsLast(
      latentFrame,
      (c) => std[c] ?? 1,
      (c) => mean[c] ?? 0,
      z,
    );
    backend.write(this.#latent, latent);
    this.#open = true;

    const quantised = await network.postQuant.step(this.#latent);
    let x = await network.convIn.step(quantised);
    scratch.give(quantised);
    for (const layer of network.middle) x = await layer.step(x, false);
    const order = 'column-row';
    for await (const folded of this.#level(0, x)) {
      const data = await backend.read(folded);
      scratch.give(folded);
      yield unfoldPixels(data, this.height, this.width, config.patch_size, order, this.range);
    }
    this.#first = false;
    this.#open = false;
  }

  /** Levels `index` and up for one frame, which it gives back to the pool. Depth first. */
  async *#level(index: number, input: Image): AsyncGenerator<Image, void, undefined> {
    const { scratch } = this.workspace;
    const block = this.network.blocks[index];
    if (!block) {
      const output = await this.network.convOut.step(input);
      scratch.give(input);
      yield output;
      return;
    }
    let x = input;
    for (const resnet of block.resnets) {
      // The block's input is needed again for its shortcut.
      x = await resnet.step(x, x === input && block.upsample !== null);
    }
    if (!block.upsample) {
      yield* this.#level(index + 1, x);
      return;
    }
    // The first latent frame becomes one frame: it skips the time convolution, whose history then
    // starts empty with the second one, and has the later half of the shortcut.
    const { time, upsample } = block;
    if (!time || this.#first) {
      const y = await upsample.step(x, input, time ? 1 : 0);
      scratch.give(x, input);
      yield* this.#level(index + 1, y);
      return;
    }
    for (const part of [0, 1] as const) {
      const frame = await time[part].step(x);
      if (part === 1) scratch.give(x);
      const y = await upsample.step(frame, input, part);
      scratch.give(frame);
      if (part === 1) scratch.give(input);
      yield* this.#level(index + 1, y);
    }
  }

  reset(): void {
    this.#first = true;
    this.#open = false;
    for (const convolution of this.convolutions) convolution.reset();
    // New partial sums are made, and therefore zero, with the next clip's first frame.
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
    const loader = new VaeLoader(scope, checkpoint, options);
    const parts = new NetworkLoader(workspace, loader, 3);
    const blocks = decoderBlocks(config);
    const top = blocks[0]?.in_dim ?? 0;
    const bottom = blocks.at(-1)?.out_dim ?? 0;
    const network = {
      postQuant: await parts.pointwise('post_quant_conv', config.z_dim, config.z_dim),
      convIn: await parts.convolution('decoder.conv_in', config.z_dim, top),
      middle: await parts.middle('decoder.mid_block', top),
      blocks: [] as UpBlock[],
      convOut: await parts.convolution(
        'decoder.conv_out',
        bottom,
        config.out_channels,
        'decoder.norm_out',
      ),
    };
    for (const block of blocks) network.blocks.push(await loadBlock(parts, block));
    return new VaeDecoder(config, options, workspace, network, parts.convolutions, scope);
  } catch (error) {
    scope.dispose();
    throw error;
  }
}

async function loadBlock(parts: NetworkLoader, block: VaeBlock): Promise<UpBlock> {
  const { name, in_dim, out_dim } = block;
  const resnets: ResidualBlock[] = [];
  for (let i = 0; i < block.resnets; i++) {
    const inputs = i === 0 ? in_dim : out_dim;
    resnets.push(await parts.residualBlock(`${name}.resnets.${i}`, inputs, out_dim));
  }
  if (!block.space) return { resnets, upsample: null, time: null };
  const shortcut = { inputs: in_dim, factorTime: block.time ? 2 : 1 } as const;
  const weights = await parts.loader.phases(`${name}.upsampler.resample.1`);
  const upsample = new Upsample(parts.workspace, out_dim, shortcut, weights);
  const timeName = `${name}.upsampler.time_conv`;
  const time = block.time
    ? ([
        await parts.timeConvolution(timeName, out_dim, 0),
        await parts.timeConvolution(timeName, out_dim, 1),
      ] as const)
    : null;
  return { resnets, upsample, time };
}

import { at } from '../../../contract';
import { decoderBlocks, type VaeBlock, type VaeConfig } from '../config';
import type { Image } from './bands';
import type { ConvolutionLayer, ResidualBlock, UpsampleLayer, Workspace } from './layers';
import type { LayerLoader } from './network';

/** A level of the decoder with its weights. */
interface UpBlock {
  readonly resnets: readonly ResidualBlock[];
  readonly upsample: UpsampleLayer | null;
  /** The time convolution's halves, for the earlier and the later of two frames. */
  readonly time: readonly [ConvolutionLayer, ConvolutionLayer] | null;
}

/**
 * The decoder's levels and its last convolution (README). Frames are processed one at a time and depth
 * first: of two frames that one becomes, the first is finished before the second one starts.
 */
export class UpBlocks {
  /** Whether the next frame is the first of its clip. */
  #first = true;

  constructor(
    readonly workspace: Workspace,
    readonly blocks: readonly UpBlock[],
    readonly convOut: ConvolutionLayer,
    readonly signal?: AbortSignal,
  ) {}

  /** All levels for one frame of the middle block, which returns to the pool. */
  async *frames(x: Image): AsyncGenerator<Image, void, undefined> {
    yield* this.#level(0, x);
    this.#first = false;
  }

  /**
   * As {@link frames}, behind the first level's residual blocks.
   *
   * @param x their result
   * @param input their input: the middle block's frame
   */
  async *framesOf(x: Image, input: Image): AsyncGenerator<Image, void, undefined> {
    yield* this.#grow(0, x, input);
    this.#first = false;
  }

  /** Starts a new clip; the caller resets the convolutions. */
  reset(): void {
    this.#first = true;
  }

  /** Levels `index` and up for one frame, which returns to the pool. */
  async *#level(index: number, input: Image): AsyncGenerator<Image, void, undefined> {
    const { scratch, backend } = this.workspace;
    // Waiting bounds the work that is submitted, so that cancelling works within a frame.
    await backend.settle();
    this.signal?.throwIfAborted();
    const block = this.blocks[index];
    if (!block) {
      const output = await this.convOut.step(input);
      scratch.give(input);
      yield output;
      return;
    }
    let x = input;
    for (const resnet of block.resnets) {
      // The block's input is needed again for its shortcut.
      x = await resnet.step(x, x === input && block.upsample !== null);
    }
    yield* block.upsample ? this.#grow(index, x, input) : this.#level(index + 1, x);
  }

  /** Upsamples a frame at the end of a level, to one or two frames, and runs the levels behind it. */
  async *#grow(index: number, x: Image, input: Image): AsyncGenerator<Image, void, undefined> {
    const { scratch } = this.workspace;
    const { time = null, upsample = null } = this.blocks[index] ?? {};
    if (!upsample) throw new TypeError(`level ${index} does not grow`);
    // The first latent frame becomes one frame: it skips the time convolution, whose history then
    // starts empty with the second one, and has the later half of the shortcut.
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
}

/**
 * Loads the levels.
 *
 * @param options `firstResnets` false leaves out the first level's residual blocks
 */
export async function loadUpBlocks(
  parts: LayerLoader,
  config: VaeConfig,
  options: { readonly firstResnets: boolean; readonly signal?: AbortSignal | undefined },
): Promise<UpBlocks> {
  const levels = decoderBlocks(config);
  const { out_dim: bottom } = at(levels, levels.length - 1);
  const norm = 'decoder.norm_out';
  const convOut = await parts.convolution('decoder.conv_out', bottom, config.out_channels, norm);
  const blocks: UpBlock[] = [];
  for (const [index, level] of levels.entries()) {
    const bare = index === 0 && !options.firstResnets;
    blocks.push(await loadUpBlock(parts, bare ? { ...level, resnets: 0 } : level));
  }
  return new UpBlocks(parts.workspace, blocks, convOut, options.signal);
}

/** Loads one level. */
export async function loadUpBlock(parts: LayerLoader, block: VaeBlock): Promise<UpBlock> {
  const { name, in_dim, out_dim, space, time } = block;
  const resnets: ResidualBlock[] = [];
  for (let i = 0; i < block.resnets; i++) {
    const inputs = i === 0 ? in_dim : out_dim;
    resnets.push(await parts.residualBlock(`${name}.resnets.${i}`, inputs, out_dim));
  }
  if (!space) return { resnets, upsample: null, time: null };
  const shortcut = { inputs: in_dim, factorTime: time ? 2 : 1 } as const;
  const upsample = await parts.upsample(`${name}.upsampler.resample.1`, out_dim, shortcut);
  if (!time) return { resnets, upsample, time: null };
  const timeName = `${name}.upsampler.time_conv`;
  return { resnets, upsample, time: await parts.timeConvolutions(timeName, out_dim) };
}

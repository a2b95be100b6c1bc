import { type Backend, type DeviceTensor, Scope, TensorPool } from '../../gpu';
import {
  baseGrowGraph,
  blockGraph,
  convolutionGraph,
  superGrowGraph,
  superShuffleGraph,
} from './tiny-decoder/graphs';
import {
  type Convolution,
  type MemoryBlock,
  type Stage,
  type TinyCheckpoint,
  TinyLoader,
  type TinyLoadOptions,
  type TinyNetwork,
} from './tiny-decoder/weights';
import type { ClipDecoder, FrameDecoder, LatentFrameSize } from './vae';
import { channelsLast, unfoldPixels } from './vae/pixels';

/*
 * TAEHV's tiny decoders for Wan2.2, base and super (tiny-decoder/README.md). Each takes model-space latents
 * through three stages of memory blocks; every stage doubles the size and, at its end, makes one or
 * two frames of each. Weights are inputs of the graphs and images are [1, H, W, C], as in the VAE.
 */

type Image = DeviceTensor<'float32'>;

/** The decoder makes four frames of the first latent frame as well; the first three are dropped. */
const droppedFrames = 3;
const patch = 2;
/** Three stages and the patch. */
const spatialFactor = 8 * patch;

/**
 * A tiny decoder, streaming. Takes model-space latents without mean and std, as the VAE's decoder
 * does, and gives RGB in 0…1: see {@link FrameDecoder.range}. Each stage processes one frame at a time.
 */
export class TinyDecoder implements FrameDecoder, ClipDecoder {
  readonly height: number;
  readonly width: number;
  readonly range = [0, 1] as const;
  readonly #pool: TensorPool;
  readonly #latent: Image;
  #frames = 0;
  #open = false;

  constructor(
    readonly backend: Backend,
    readonly size: LatentFrameSize,
    readonly network: TinyNetwork,
    readonly scope: Scope,
    readonly signal?: AbortSignal,
  ) {
    this.height = size.latentHeight * spatialFactor;
    this.width = size.latentWidth * spatialFactor;
    this.#pool = new TensorPool(backend, 'activations');
    const { inputs } = network.first.spec;
    this.#latent = scope.float32([1, size.latentHeight, size.latentWidth, inputs], 'activations');
  }

  async *decode(
    latentFrame: Float32Array,
  ): AsyncGenerator<Float32Array<ArrayBuffer>, void, undefined> {
    if (this.#open) throw new TypeError('the last latent frame is not decoded to its end');
    const { first } = this.network;
    const same = { scale: () => 1, shift: () => 0 };
    const latent = channelsLast(latentFrame, same.scale, same.shift, first.spec.inputs);
    this.backend.write(this.#latent, latent);
    this.#open = true;
    yield* this.#stage(0, await this.#convolve(first, this.#latent));
    this.#open = false;
  }

  /** Stages `index` and up for one frame, depth first; the frame returns to the pool. */
  async *#stage(
    index: number,
    input: Image,
  ): AsyncGenerator<Float32Array<ArrayBuffer>, void, undefined> {
    const stage = this.network.stages[index];
    if (!stage) {
      const frame = await this.#finish(input);
      if (frame) yield frame;
      return;
    }
    let x = input;
    for (const block of stage.blocks) x = await this.#memoryBlock(block, x);
    for await (const frame of this.#grow(stage, x)) yield* this.#stage(index + 1, frame);
  }

  /** A memory block. Its input is kept for the next frame. */
  async #memoryBlock(block: MemoryBlock, x: Image): Promise<Image> {
    const { backend, network } = this;
    const { channels } = block;
    const y = this.#pool.take(x.dims);
    const previous = block.previous ?? this.#pool.zero(x.dims);
    const graph = blockGraph({
      layout: backend.convLayout,
      channels,
      variant: network.variant,
    });
    await backend.run(graph, { ...block.weights, x, previous }, { y });
    this.#pool.give(previous);
    block.previous = x;
    return y;
  }

  /** The end of a stage: its frames in double size, one after another; `x` returns to the pool. */
  async *#grow(stage: Stage, x: Image): AsyncGenerator<Image, void, undefined> {
    const { backend, network } = this;
    const { inputs, outputs, weights } = stage;
    const [, height = 0, width = 0] = x.dims;
    const large = [1, 2 * height, 2 * width, outputs];
    const spec = { layout: backend.convLayout, inputs, outputs };
    if (network.variant === 'base') {
      for (const grow of stage.grow) {
        const y = this.#pool.take(large);
        await backend.run(baseGrowGraph(spec), { ...weights, x, grow }, { y });
        yield y;
      }
      this.#pool.give(x);
      return;
    }
    const shuffled = this.#pool.take(large);
    await backend.run(superShuffleGraph(spec), { ...weights, x }, { y: shuffled });
    this.#pool.give(x);
    for (const grow of stage.grow) {
      const y = this.#pool.take(large);
      await backend.run(superGrowGraph({ channels: outputs }), { x: shuffled, grow }, { y });
      yield y;
    }
    this.#pool.give(shuffled);
  }

  async #convolve({ spec, weights }: Convolution, x: Image): Promise<Image> {
    const [, height = 0, width = 0] = x.dims;
    const y = this.#pool.take([1, height, width, spec.filters]);
    await this.backend.run(convolutionGraph(spec), { ...weights, x }, { y });
    return y;
  }

  /** The last convolution and the pixels, unless the frame is one of those that are dropped. */
  async #finish(x: Image): Promise<Float32Array<ArrayBuffer> | null> {
    this.#frames += 1;
    if (this.#frames <= droppedFrames) {
      this.#pool.give(x);
      return null;
    }
    const folded = await this.#convolve(this.network.last, x);
    this.#pool.give(x);
    const data = await this.backend.read(folded);
    this.#pool.give(folded);
    return unfoldPixels(data, this.height, this.width, patch, 'row-column', this.range);
  }

  async *decodeClip(
    latentFrames: readonly Float32Array[],
  ): AsyncGenerator<Float32Array<ArrayBuffer>, void, undefined> {
    this.reset();
    for (const latentFrame of latentFrames) {
      this.signal?.throwIfAborted();
      yield* this.decode(latentFrame);
    }
  }

  reset(): void {
    this.#frames = 0;
    this.#open = false;
    for (const stage of this.network.stages) {
      for (const block of stage.blocks) block.previous = null;
    }
    // A clip starts with previous frames of zeros, and only new tensors are zero.
    this.#pool.dispose();
  }

  dispose(): void {
    this.#pool.dispose();
    this.scope.dispose();
  }
}

export interface TinyDecoderOptions extends LatentFrameSize, TinyLoadOptions {}

/**
 * Loads a tiny decoder. Variant and widths come from the file's own tensors.
 *
 * @param checkpoint tensors by the original names, `decoder.N…`
 * @throws KinoraError `TENSOR_MISSING` when the file is neither variant, `TENSOR_SHAPE`
 */
export async function createTinyDecoder(
  backend: Backend,
  checkpoint: TinyCheckpoint,
  options: TinyDecoderOptions,
): Promise<TinyDecoder> {
  const scope = new Scope(backend);
  try {
    const network = await new TinyLoader(scope, checkpoint, options).network();
    return new TinyDecoder(backend, options, network, scope, options.signal);
  } catch (error) {
    scope.dispose();
    throw error;
  }
}

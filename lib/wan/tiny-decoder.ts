import { KinoraError } from '../contract';
import { type Backend, type Bindings, type DeviceTensor, Scope } from '../gpu';
import { add, concat, GraphBuilder, matMul, mul, relu, tanh, type Value } from '../onnx';
import type { Checkpoint } from '../weights';
import type { FrameDecoder, LatentFrameSize } from './vae';
import { convolve, interleave, type Layout, memoised, pixelShuffle } from './vae/nhwc';
import { channelsLast, unfoldPixels } from './vae/pixels';
import { TensorPool } from './vae/pool';
import { transposed, uploadPhases } from './vae/weights';

/*
 * TAEHV's tiny decoders for Wan2.2 (reference §6), base and super. Each takes model-space latents
 * through three stages of memory blocks; every stage doubles the size and, at its end, makes one or
 * two frames of each. Weights are inputs of the graphs and images are [1, H, W, C], as in the VAE.
 */

type Float = Value<'float32'>;
type Image = DeviceTensor<'float32'>;

/** What a tiny decoder reads of its file. */
export type TinyCheckpoint = Pick<Checkpoint, 'has' | 'shape' | 'read' | 'bytes'>;

/** A memory block sees its own input of one frame earlier. */
interface MemoryBlock {
  readonly channels: number;
  readonly weights: Bindings;
  /** Input of the last frame; none at the start of a clip. */
  previous: Image | null;
}

interface Stage {
  readonly blocks: readonly MemoryBlock[];
  /** Channels before and after the stage's end. */
  readonly inputs: number;
  readonly outputs: number;
  readonly weights: Bindings;
  /** TGrow: per frame that is made, its 1×1 convolution as [K, N]. */
  readonly grow: readonly DeviceTensor[];
}

type Variant = 'base' | 'super';

/** Sequential indices of the original model: the key prefixes. */
const layout = {
  base: {
    first: 1,
    stages: [
      { blocks: [3, 4, 5], grow: 7, convolution: 8, frames: 1 },
      { blocks: [9, 10, 11], grow: 13, convolution: 14, frames: 2 },
      { blocks: [15, 16, 17], grow: 19, convolution: 20, frames: 2 },
    ],
    last: 22,
  },
  super: {
    first: 0,
    stages: [
      { blocks: [1, 2, 3], grow: 7, convolution: 4, frames: 1 },
      { blocks: [8, 9, 10], grow: 14, convolution: 11, frames: 2 },
      { blocks: [15, 16, 17], grow: 21, convolution: 18, frames: 2 },
    ],
    last: 22,
  },
} as const;

/** The decoder makes four frames of the first latent frame, too; only the last of them is real. */
const droppedFrames = 3;
const patch = 2;
/** Three stages and the patch. */
const spatialFactor = 8 * patch;

const samePads = (kernel: number) => {
  const edge = (kernel - 1) / 2;
  return [edge, edge, edge, edge] as const;
};

interface ConvolutionSpec {
  readonly layout: Layout;
  readonly inputs: number;
  readonly filters: number;
  readonly kernel: 1 | 3;
  readonly bias: boolean;
  /** Around the convolution: the base's `3·tanh(x/3)` at its start, ReLU before or behind. */
  readonly before: 'nothing' | 'soft clamp' | 'relu';
  readonly after: 'nothing' | 'relu';
}

const convolutionGraph = memoised((spec: ConvolutionSpec) => {
  const { inputs, filters, kernel } = spec;
  const g = new GraphBuilder(`tiny convolution ${inputs}→${filters}`);
  let x: Float = g.input('x', 'float32', [1, 'H', 'W', inputs]);
  if (spec.before === 'relu') x = relu(x);
  if (spec.before === 'soft clamp') x = mul(tanh(mul(x, g.scalar(1 / 3))), g.scalar(3));
  const weight = g.input('weight', 'float32', [filters, inputs, kernel, kernel]);
  const bias = spec.bias ? g.input('bias', 'float32', [filters]) : null;
  const y = convolve(x, weight, bias, spec.layout, { pads: samePads(kernel) });
  g.output('y', spec.after === 'relu' ? relu(y) : y);
  return g.build();
});

interface BlockSpec {
  readonly layout: Layout;
  readonly channels: number;
  /** At the start of a clip the earlier frame is zero: its half of the weights is left unused. */
  readonly variant: Variant;
}

/**
 * Base: three 3×3 convolutions with ReLU over [x_t ‖ x_{t−1}]; super: depthwise 7×7, then 1×1 to
 * twice the width and back. Both add x_t.
 */
const blockGraph = memoised(({ layout: convLayout, channels: c, variant }: BlockSpec) => {
  const g = new GraphBuilder(`tiny ${variant} block ${c}`);
  const image = (name: string) => g.input(name, 'float32', [1, 'H', 'W', c]);
  const x = image('x');
  const pair = concat([x, image('previous')], 3);
  if (variant === 'base') {
    const layer = (value: Float, index: number, inputs: number) =>
      convolve(
        value,
        g.input(`weight${index}`, 'float32', [c, inputs, 3, 3]),
        g.input(`bias${index}`, 'float32', [c]),
        convLayout,
        { pads: samePads(3) },
      );
    const first = relu(layer(pair, 0, 2 * c));
    const second = relu(layer(first, 1, c));
    g.output('y', relu(add(layer(second, 2, c), x)));
  } else {
    const depthwise = g.input('depthwise', 'float32', [2 * c, 1, 7, 7]);
    const mixed = convolve(pair, depthwise, null, convLayout, { pads: samePads(7), group: 2 * c });
    const wide = matMul(mixed, g.input('widen', 'float32', [2 * c, 4 * c]));
    const hidden = relu(add(wide, g.input('widenBias', 'float32', [4 * c])));
    g.output('y', add(matMul(hidden, g.input('narrow', 'float32', [4 * c, c])), x));
  }
  return g.build();
});

interface GrowSpec {
  readonly layout: Layout;
  readonly inputs: number;
  readonly outputs: number;
}

/**
 * End of a base stage for one of its frames: nearest ×2, TGrow's 1×1 and the 3×3 convolution. The 1×1
 * works per pixel, so it goes first; the rest is four 2×2 convolutions as in the VAE's upsampler.
 */
const baseGrowGraph = memoised(({ layout: convLayout, inputs, outputs }: GrowSpec) => {
  const g = new GraphBuilder(`tiny base growth ${inputs}→${outputs}`);
  const x = g.input('x', 'float32', [1, 'H', 'W', inputs]);
  const frame = matMul(x, g.input('grow', 'float32', [inputs, inputs]));
  const phases = [0, 1, 2, 3].map((phase) => {
    const [row, column] = [phase >> 1, phase & 1];
    const weight = g.input(`phase${row}${column}`, 'float32', [outputs, inputs, 2, 2]);
    const pads = [1 - row, 1 - column, row, column] as const;
    return convolve(frame, weight, null, convLayout, { pads });
  });
  g.output('y', interleave(phases, convLayout));
  return g.build();
});

/** End of a super stage: 3×3 convolution to four times the channels, ReLU, pixel shuffle. */
const superShuffleGraph = memoised(({ layout: convLayout, inputs, outputs }: GrowSpec) => {
  const g = new GraphBuilder(`tiny super shuffle ${inputs}→${outputs}`);
  const x = g.input('x', 'float32', [1, 'H', 'W', inputs]);
  const weight = g.input('weight', 'float32', [4 * outputs, inputs, 3, 3]);
  const bias = g.input('bias', 'float32', [4 * outputs]);
  const wide = convolve(x, weight, bias, convLayout, { pads: samePads(3) });
  g.output('y', pixelShuffle(relu(wide), convLayout));
  return g.build();
});

/** TGrow of a super stage for one of its frames. */
const superGrowGraph = memoised(({ channels }: { channels: number }) => {
  const g = new GraphBuilder(`tiny super growth ${channels}`);
  const x = g.input('x', 'float32', [1, 'H', 'W', channels]);
  g.output('y', matMul(x, g.input('grow', 'float32', [channels, channels])));
  return g.build();
});

interface Convolution {
  readonly spec: ConvolutionSpec;
  readonly weights: Bindings;
}

interface TinyNetwork {
  readonly variant: Variant;
  readonly first: Convolution;
  readonly stages: readonly Stage[];
  readonly last: Convolution;
}

/**
 * A tiny decoder, streaming. Takes model-space latents without mean and std, as the VAE's decoder
 * does, and gives RGB in 0…1: see {@link FrameDecoder.range}. Frames pass alone through every stage.
 */
export class TinyDecoder implements FrameDecoder {
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
    this.#open = true;
    const { first } = this.network;
    const same = { scale: () => 1, shift: () => 0 };
    const latent = channelsLast(latentFrame, same.scale, same.shift, first.spec.inputs);
    this.backend.write(this.#latent, latent);
    yield* this.#stage(0, await this.#convolve(first, this.#latent));
    this.#open = false;
  }

  /** Stages `index` and up for one frame, which belongs to the callee. Depth first. */
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
    for (const block of stage.blocks) x = await this.#remember(block, x);
    for await (const frame of this.#grow(stage, x)) yield* this.#stage(index + 1, frame);
  }

  /** A memory block. Its input stays behind as what the next frame remembers. */
  async #remember(block: MemoryBlock, x: Image): Promise<Image> {
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

  /** The stage's end: doubled in size, one frame after another. Gives `x` back. */
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

  reset(): void {
    this.#frames = 0;
    this.#open = false;
    for (const stage of this.network.stages) {
      for (const block of stage.blocks) block.previous = null;
    }
    // What is remembered at a clip's start is zero, and only new tensors are.
    this.#pool.dispose();
  }

  dispose(): void {
    this.#pool.dispose();
    this.scope.dispose();
  }
}

export interface TinyDecoderOptions extends LatentFrameSize {
  /** Called with the stored size of each tensor that was read. */
  readonly onBytes?: (bytes: number) => void;
  readonly signal?: AbortSignal;
}

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
    return new TinyDecoder(backend, options, network, scope);
  } catch (error) {
    scope.dispose();
    throw error;
  }
}

/** @throws KinoraError `TENSOR_MISSING` when the file is neither variant */
function variantOf(checkpoint: TinyCheckpoint): Variant {
  if (checkpoint.has('decoder.0.weight')) return 'super';
  if (checkpoint.has('decoder.1.weight')) return 'base';
  throw new KinoraError(
    'TENSOR_MISSING',
    'The file is no tiny decoder: it has neither decoder.0.weight nor decoder.1.weight.',
  );
}

class TinyLoader {
  constructor(
    readonly scope: Scope,
    readonly checkpoint: TinyCheckpoint,
    readonly options: TinyDecoderOptions,
  ) {}

  async network(): Promise<TinyNetwork> {
    const variant = variantOf(this.checkpoint);
    const { first, stages, last } = layout[variant];
    const base = variant === 'base';
    const loaded: Stage[] = [];
    const start = await this.#convolution(
      `decoder.${first}`,
      base ? { before: 'soft clamp', after: 'relu' } : { before: 'nothing', after: 'nothing' },
    );
    for (const stage of stages) loaded.push(await this.#stage(variant, stage));
    return {
      variant,
      first: start,
      stages: loaded,
      last: await this.#convolution(`decoder.${last}`, {
        before: base ? 'relu' : 'nothing',
        after: 'nothing',
      }),
    };
  }

  async #convolution(
    name: string,
    activations: Pick<ConvolutionSpec, 'before' | 'after'>,
  ): Promise<Convolution> {
    const [filters = 0, inputs = 0, kernel] = this.checkpoint.shape(`${name}.weight`);
    const bias = this.checkpoint.has(`${name}.bias`);
    if (kernel !== 1 && kernel !== 3) {
      throw new KinoraError('TENSOR_SHAPE', `${name}.weight has a kernel of ${kernel}.`);
    }
    const { convLayout } = this.scope.backend;
    return {
      spec: { layout: convLayout, inputs, filters, kernel, bias, ...activations },
      weights: {
        weight: await this.#tensor(`${name}.weight`),
        ...(bias && { bias: await this.#tensor(`${name}.bias`) }),
      },
    };
  }

  async #stage(
    variant: Variant,
    indices: (typeof layout)[Variant]['stages'][number],
  ): Promise<Stage> {
    const blocks: MemoryBlock[] = [];
    for (const index of indices.blocks) blocks.push(await this.#block(variant, index));
    const name = `decoder.${indices.convolution}`;
    const [filters = 0, inputs = 0] = this.checkpoint.shape(`${name}.weight`);
    const base = variant === 'base';
    const outputs = base ? filters : filters / 4;
    const weights = base
      ? uploadPhases(this.scope, await this.#read(`${name}.weight`), filters, inputs)
      : {
          weight: this.scope.float32(
            this.checkpoint.shape(`${name}.weight`),
            'weights',
            shuffledFilters(await this.#read(`${name}.weight`), outputs),
          ),
          bias: this.scope.float32(
            [filters],
            'weights',
            shuffledFilters(await this.#read(`${name}.bias`), outputs),
          ),
        };
    const grow = await this.#growth(`decoder.${indices.grow}.conv.weight`, indices.frames);
    return { blocks, inputs, outputs, weights, grow };
  }

  async #block(variant: Variant, index: number): Promise<MemoryBlock> {
    const prefix = `decoder.${index}.conv`;
    if (variant === 'base') {
      const [channels = 0] = this.checkpoint.shape(`${prefix}.0.weight`);
      const weights: Record<string, DeviceTensor> = {};
      for (const i of [0, 1, 2]) {
        weights[`weight${i}`] = await this.#tensor(`${prefix}.${2 * i}.weight`);
        weights[`bias${i}`] = await this.#tensor(`${prefix}.${2 * i}.bias`);
      }
      return { channels, weights, previous: null };
    }
    const [channels = 0] = this.checkpoint.shape(`${prefix}.3.weight`);
    const weights = {
      depthwise: await this.#tensor(`${prefix}.0.weight`),
      widen: await this.#matrix(`${prefix}.1.weight`),
      widenBias: await this.#tensor(`${prefix}.1.bias`),
      narrow: await this.#matrix(`${prefix}.3.weight`),
    };
    return { channels, weights, previous: null };
  }

  /**
   * TGrow [frames·C, C, 1, 1] as one matrix [C, C] per frame, the earliest first. A file may have
   * more rows than there are frames: the last ones count.
   */
  async #growth(name: string, frames: number): Promise<DeviceTensor[]> {
    const [rows = 0, channels = 0] = this.checkpoint.shape(name);
    const surplus = rows - frames * channels;
    if (surplus < 0) {
      throw new KinoraError(
        'TENSOR_SHAPE',
        `${name} has ${rows} rows; ${frames} frames of ${channels} channels need more.`,
      );
    }
    const data = await this.#read(name);
    return Array.from({ length: frames }, (_, frame) => {
      const start = (surplus + frame * channels) * channels;
      const part = data.subarray(start, start + channels * channels);
      return this.scope.float32(
        [channels, channels],
        'weights',
        transposed(part, channels, channels),
      );
    });
  }

  /** A 1×1 convolution [N, K, 1, 1] as matrix [K, N]. */
  async #matrix(name: string): Promise<DeviceTensor> {
    const [filters = 0, inputs = 0] = this.checkpoint.shape(name);
    const data = transposed(await this.#read(name), filters, inputs);
    return this.scope.float32([inputs, filters], 'weights', data);
  }

  async #tensor(name: string): Promise<DeviceTensor> {
    return this.scope.float32(this.checkpoint.shape(name), 'weights', await this.#read(name));
  }

  async #read(name: string): Promise<Float32Array> {
    this.options.signal?.throwIfAborted();
    const data = await this.checkpoint.read(name);
    this.options.onBytes?.(this.checkpoint.bytes(name));
    return data;
  }
}

/** Filters in PyTorch's order (channel, row, column) → (row, column, channel). */
function shuffledFilters(data: Float32Array, channels: number): Float32Array {
  const size = data.length / (4 * channels);
  const out = new Float32Array(data.length);
  for (let c = 0; c < channels; c++) {
    for (let pixel = 0; pixel < 4; pixel++) {
      const source = (c * 4 + pixel) * size;
      out.set(data.subarray(source, source + size), (pixel * channels + c) * size);
    }
  }
  return out;
}

import {
  type Backend,
  type DeviceTensor,
  type Executor,
  elementCount,
  type RowChunk,
  Scope,
} from '../../../gpu';
import type { LatentSize } from '../../../pipeline/latents';
import { bindLinear } from '../../layers/linear';
import { type TransformerConfig, transformerDim } from '../config-schemas';
import { chunkTokens, tokenOrder, tokensPerFrame } from '../tokens';
import * as network from './transformer-network';
import { type BlockWeights, clipSizes, type TransformerWeights } from './transformer-weights';

type Tensor = DeviceTensor<'float32'>;

/** What the blocks need of one timestep. */
export interface TimeEmbedding {
  readonly temb: Tensor; // [1, D]
  readonly modulation: Tensor; // [6, D]
}

/** The timesteps of a clip's tokens. */
export interface Times {
  /** Of the conditioning tokens: 0. */
  readonly conditioning: TimeEmbedding;
  readonly noisy: TimeEmbedding;
}

/** A prompt as the blocks see it. */
export interface TextContext {
  readonly context: Tensor; // [T, D]
  /** Added to the logit of the last key, which stands for all empty rows of the text at once. */
  readonly lastBias: number;
  dispose(): void;
}

/** Rows of all tokens [S, C·ph·pw] in two tensors. A chunk has rows of one of them only. */
export interface TokenRows {
  /** Null where these tokens are left out. */
  readonly conditioning: Tensor | null; // [P, C·ph·pw]
  readonly free: Tensor; // [S − P, C·ph·pw]
}

/** Sizes and work of a clip that are known before it runs. */
export interface ClipOptions {
  /** Latent frames that are given, in ascending order: they stay as they are, at timestep 0, and their tokens come first. */
  readonly given: readonly number[];
  /** Upper bound of a chunk. */
  readonly maxChunkTokens: number;
  /** Whether two branches will run (guidance scale over 1). */
  readonly guided: boolean;
  /** Whether what the blocks add is kept for later steps. */
  readonly reusesBlocks?: boolean;
  /** Rows of an image that the blocks attend to; none when absent. */
  readonly imageRows?: number | undefined;
}

/** Where the head takes its rows from: a residual stream, or the embedded tokens and what the blocks added before. */
export type HeadSource = { readonly stream: number } | { readonly reused: number };

/** Classes of tokens: index into the tensors of {@link classed}. */
const [noisy, conditioning] = [0, 1];

/** The tokens of a clip. */
export interface ClipTokens {
  /** S */
  readonly tokens: number;
  /** Tokens of the conditioning frames. */
  readonly conditioningTokens: number;
  /** All of them; no chunk has tokens of both timesteps. */
  readonly chunks: readonly RowChunk[];
}

export function tokensOf(
  config: TransformerConfig,
  size: LatentSize,
  { given, maxChunkTokens }: ClipOptions,
): ClipTokens {
  const perFrame = tokensPerFrame(config, size);
  const chunks = chunkTokens(size.frames, perFrame, given.length, maxChunkTokens);
  return {
    tokens: perFrame * size.frames,
    conditioningTokens: perFrame * given.length,
    chunks: chunks.map(({ start, count, ...chunk }) => {
      return { start, count, class: chunk.conditioning ? conditioning : noisy };
    }),
  };
}

/**
 * The activations of a clip on the device and the steps of a pass over them, in the order of the README. There
 * is a residual stream [S, D] for each guidance branch: 0, and 1 with guidance. Steps resolve when their work is
 * submitted.
 */
export class Clip {
  readonly #scope: Scope;
  /** The residual streams, of one guidance branch or two, [S, D] each. */
  readonly #streams: readonly Tensor[];
  /** What all blocks together added, by branch, [S, D] each; none where no step reuses it. */
  readonly #residuals: readonly Tensor[];
  readonly #rotary: Readonly<Record<'cos' | 'sin', Tensor>>; // [S, headDim/2] each
  /** What the clip is conditioned by beside its latents, in the order of its tokens, [S, C·ph·pw]. */
  readonly condition?: Tensor;
  /** The embedded image, [I, D]. */
  readonly image?: Tensor;

  /**
   * @param executor what computes the clip, which disposes it
   * @throws KinoraError `OUT_OF_MEMORY`; then nothing stays on the device
   */
  constructor(
    readonly backend: Backend,
    readonly executor: Executor,
    readonly config: TransformerConfig,
    readonly weights: TransformerWeights,
    readonly size: LatentSize,
    readonly of: ClipTokens,
    options: ClipOptions,
  ) {
    this.#scope = new Scope(backend);
    const { streams, residuals, rotary, conditions } = clipSizes(config, of.tokens, options);
    const make = (dims: readonly number[]) => this.#scope.float32(dims, 'activations');
    try {
      this.#streams = streams.map(make);
      this.#residuals = residuals.map(make);
      const order = tokenOrder(size.frames, options.given);
      this.#rotary = this.#scope.all(
        rotary,
        'activations',
        network.rotaryTables(config, size, order),
      );
      Object.assign(this, this.#scope.all(conditions, 'activations'));
    } catch (error) {
      this.dispose();
      throw error;
    }
  }

  /** S */
  get tokens(): number {
    return this.of.tokens;
  }

  /** Tokens of the conditioning frames. */
  get conditioningTokens(): number {
    return this.of.conditioningTokens;
  }

  /** @param rows what the clip is conditioned by beside its latents, [S, C·ph·pw] */
  setCondition(rows: Float32Array): void {
    if (!this.condition) throw new TypeError('nothing conditions the clip');
    this.backend.write(this.condition, rows);
  }

  /** Patch embedding of tokens into stream 0. Tokens that are left out have no defined content then. */
  async embed(tokens: TokenRows): Promise<void> {
    const { patchEmbedding } = this.weights;
    const graph = network.patchEmbedding(patchEmbedding.spec);
    const bindings = { hidden: this.#stream(0), ...bindLinear('patch_embedding', patchEmbedding) };
    for (const [rows, chunks] of this.#parts(tokens)) {
      await this.executor.run(graph, { ...bindings, tokens: rows }, chunks);
    }
    const { conditionEmbedding } = this.weights;
    if (!conditionEmbedding || !this.condition) return;
    await this.executor.run(
      network.conditionEmbedding(conditionEmbedding.spec, transformerDim(this.config)),
      {
        hidden: this.#stream(0),
        condition: this.condition,
        ...bindLinear('condition_embedding', conditionEmbedding),
      },
      this.of.chunks,
    );
  }

  /** Stream 1 becomes a copy of stream 0. */
  fork(): void {
    this.#copy(this.#stream(0), this.#stream(1));
  }

  /** Steps 1 and 2. */
  selfAttention(index: number, block: BlockWeights, times: Times): Promise<void> {
    return this.executor.run(
      network.selfAttention(this.config, block.specs),
      { x: this.#stream(index), ...this.#rotary, ...blockBindings(block, times) },
      this.of.chunks,
    );
  }

  /** Steps 3 and 4. The keys and values of the text are computed before. */
  crossFeedForward(
    index: number,
    block: BlockWeights,
    times: Times,
    { context, lastBias }: TextContext,
  ): Promise<void> {
    return this.executor.run(
      network.crossFeedForward(this.config, block.specs),
      {
        x: this.#stream(index),
        context,
        lastBias,
        ...(this.image && { image: this.image }),
        ...blockBindings(block, times),
      },
      this.of.chunks,
    );
  }

  /**
   * Holds stream 0, the embedded tokens, for {@link keepResidual}.
   *
   * @throws TypeError where the clip was not made to reuse its blocks
   */
  holdEmbedded(branch: number): void {
    this.#copy(this.#stream(0), this.#residual(branch));
  }

  /** Keeps what the blocks added to what was held. */
  keepResidual(branch: number, index: number): Promise<void> {
    return this.executor.run(
      network.blocksResidual(transformerDim(this.config)),
      { x: this.#stream(index), residual: this.#residual(branch) },
      this.of.chunks,
    );
  }

  /** @param velocity where the result goes */
  async head(source: HeadSource, times: Times, velocity: TokenRows): Promise<void> {
    const { projOut, scaleShiftTable } = this.weights;
    const reuses = 'reused' in source;
    const graph = network.head(this.config, projOut.spec, reuses);
    const bindings = {
      ...(reuses
        ? { x: this.#stream(0), residual: this.#residual(source.reused) }
        : { x: this.#stream(source.stream) }),
      scale_shift_table: scaleShiftTable,
      temb: classed(times, 'temb'),
      ...bindLinear('proj_out', projOut),
    };
    for (const [rows, chunks] of this.#parts(velocity)) {
      await this.executor.run(graph, { ...bindings, velocity: rows }, chunks);
    }
  }

  /** Ends a pass: brings what its kernels have counted to the CPU. */
  finish(): Promise<void> {
    return this.executor.finish();
  }

  /** Stream 0, [S, D]. */
  read(): Promise<Float32Array> {
    return this.backend.read(this.#stream(0));
  }

  dispose(): void {
    this.executor.dispose();
    this.#scope.dispose();
  }

  /** The tensors of tokens with the chunks whose rows they have; those that are left out are not among them. */
  #parts(rows: TokenRows) {
    const part = (tensor: Tensor, first: number, chunkClass: number) =>
      [{ tensor, first }, this.of.chunks.filter((chunk) => chunk.class === chunkClass)] as const;
    return [
      ...(rows.conditioning ? [part(rows.conditioning, 0, conditioning)] : []),
      part(rows.free, this.conditioningTokens, noisy),
    ];
  }

  #stream(index: number): Tensor {
    const stream = this.#streams[index];
    if (!stream) throw new TypeError('the clip was not made for guidance');
    return stream;
  }

  #residual(branch: number): Tensor {
    const residual = this.#residuals[branch];
    if (!residual) throw new TypeError('the clip was not made to reuse its blocks');
    return residual;
  }

  #copy(from: Tensor, to: Tensor): void {
    this.backend.copy(from, 0, to, 0, elementCount(from.dims));
  }
}

/** What the graphs of a block read beside the streams. */
function blockBindings({ linears, ...block }: BlockWeights, times: Times) {
  return {
    ...Object.fromEntries(
      [...linears].flatMap(([name, linear]) => Object.entries(bindLinear(name, linear))),
    ),
    scale_shift_table: block.scaleShiftTable,
    modulation: classed(times, 'modulation'),
    'attn1.norm_q': block.attn1.normQ,
    'attn1.norm_k': block.attn1.normK,
    'attn2.norm_q': block.attn2.normQ,
    'attn2.norm_k': block.attn2.normK,
    ...(block.attn2.normAddedK && { 'attn2.norm_added_k': block.attn2.normAddedK }),
    'norm2.weight': block.norm2.weight,
    'norm2.bias': block.norm2.bias,
  };
}

function classed(times: Times, part: 'temb' | 'modulation'): readonly Tensor[] {
  return [times.noisy[part], times.conditioning[part]];
}

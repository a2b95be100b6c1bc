import { type Backend, elementCount, type RowChunk, RuntimeExecutor, Scope } from '../../../gpu';
import type { LatentSize } from '../../../pipeline/latents';
import { type TransformerConfig, transformerDim } from '../config';
import { bindLinear } from '../layers';
import { chunkTokens, rotaryTables, tokensPerFrame } from '../tokens';
import type { Clip, ClipOptions, HeadSource, Tensor, TextContext, Times, TokenRows } from './clip';
import * as network from './network';
import type { BlockWeights, TransformerWeights } from './weights';

/** Classes of tokens: index into the tensors of {@link classed}. */
const [noisy, conditioning] = [0, 1];

/** A clip whose steps the runtime computes, in f32. */
export class RuntimeClip implements Clip {
  readonly tokens: number;
  readonly conditioningTokens: number;
  readonly #scope: Scope;
  readonly #executor: RuntimeExecutor;
  readonly #chunks: readonly RowChunk[];
  /** The residual streams, of one guidance branch or two, [S, D] each. */
  readonly #streams: readonly Tensor[];
  /** What all blocks together added, by branch, [S, D] each; none where no step reuses it. */
  readonly #residuals: readonly Tensor[];
  readonly #rotary: { readonly cos: Tensor; readonly sin: Tensor }; // [S, headDim/2] each

  /** @throws KinoraError `OUT_OF_MEMORY`; then nothing stays on the device */
  constructor(
    readonly backend: Backend,
    readonly config: TransformerConfig,
    readonly weights: TransformerWeights,
    readonly size: LatentSize,
    { conditioningFrames, maxChunkTokens, guided, reusesBlocks }: ClipOptions,
  ) {
    const perFrame = tokensPerFrame(config, size);
    this.tokens = perFrame * size.frames;
    this.conditioningTokens = perFrame * conditioningFrames;
    this.#chunks = chunkTokens(size.frames, perFrame, conditioningFrames, maxChunkTokens).map(
      (chunk) => ({ ...chunk, class: chunk.conditioning ? conditioning : noisy }),
    );
    this.#executor = new RuntimeExecutor(backend);
    this.#scope = new Scope(backend);
    const branches = guided ? 2 : 1;
    const make = () => this.#scope.float32([this.tokens, transformerDim(config)], 'activations');
    try {
      this.#streams = Array.from({ length: branches }, make);
      this.#residuals = Array.from({ length: reusesBlocks ? branches : 0 }, make);
      const { cos, sin } = rotaryTables(config, size);
      const table = (data: Float32Array) =>
        this.#scope.float32([this.tokens, config.attention_head_dim / 2], 'activations', data);
      this.#rotary = { cos: table(cos), sin: table(sin) };
    } catch (error) {
      this.#scope.dispose();
      throw error;
    }
  }

  /** The executor has memory of its own for the keys and values of a text. */
  createTextMemory(): null {
    return null;
  }

  async embed(tokens: TokenRows): Promise<void> {
    const { patchEmbedding } = this.weights;
    const graph = network.patchEmbedding(patchEmbedding.spec);
    const bindings = { hidden: this.#stream(0), ...bindLinear('patch_embedding', patchEmbedding) };
    for (const [rows, chunks] of this.#parts(tokens)) {
      await this.#executor.run(graph, { ...bindings, tokens: rows }, chunks);
    }
  }

  fork(): void {
    this.#copy(this.#stream(0), this.#stream(1));
  }

  selfAttention(index: number, block: BlockWeights, times: Times): Promise<void> {
    return this.#executor.run(
      network.selfAttention(this.config, block.specs),
      { x: this.#stream(index), ...this.#rotary, ...blockBindings(block, times) },
      this.#chunks,
    );
  }

  crossFeedForward(
    index: number,
    block: BlockWeights,
    times: Times,
    { context, lastBias }: TextContext,
  ): Promise<void> {
    return this.#executor.run(
      network.crossFeedForward(this.config, block.specs),
      { x: this.#stream(index), context, lastBias, ...blockBindings(block, times) },
      this.#chunks,
    );
  }

  holdEmbedded(branch: number): void {
    this.#copy(this.#stream(0), this.#residual(branch));
  }

  keepResidual(branch: number, index: number): Promise<void> {
    return this.#executor.run(
      network.blocksResidual(transformerDim(this.config)),
      { x: this.#stream(index), residual: this.#residual(branch) },
      this.#chunks,
    );
  }

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
      await this.#executor.run(graph, { ...bindings, velocity: rows }, chunks);
    }
  }

  /** The runtime counts nothing. */
  async finish(): Promise<void> {}

  read(): Promise<Float32Array> {
    return this.backend.read(this.#stream(0));
  }

  dispose(): void {
    this.#executor.dispose();
    this.#scope.dispose();
  }

  /** The tensors of tokens with the chunks whose rows they have; those that are left out are not among them. */
  #parts(rows: TokenRows) {
    const part = (tensor: Tensor, first: number, wanted: number) =>
      [{ tensor, first }, this.#chunks.filter((chunk) => chunk.class === wanted)] as const;
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
      network.blockLinears.flatMap((name) => Object.entries(bindLinear(name, linears[name]))),
    ),
    scale_shift_table: block.scaleShiftTable,
    modulation: classed(times, 'modulation'),
    'attn1.norm_q': block.attn1.normQ,
    'attn1.norm_k': block.attn1.normK,
    'attn2.norm_q': block.attn2.normQ,
    'attn2.norm_k': block.attn2.normK,
    'norm2.weight': block.norm2.weight,
    'norm2.bias': block.norm2.bias,
  };
}

function classed(times: Times, part: 'temb' | 'modulation'): readonly Tensor[] {
  return [times.noisy[part], times.conditioning[part]];
}

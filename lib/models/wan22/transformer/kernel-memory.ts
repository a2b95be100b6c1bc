import { type Backend, type DeviceTensor, elementCount, Scope } from '../../../gpu';
import { packedWidth, type QuantisedHeads, storageBytes } from '../../../gpu/kernels';
import type { LatentSize } from '../../../pipeline/latents';
import { type TransformerConfig, transformerDim } from '../config';
import { type Chunk, chunkTokens, rotaryTables, tokensPerFrame } from '../tokens';
import type { ClipOptions } from './clip';
import {
  type HeadRange,
  type HeadRows,
  headRanges,
  type Rows,
  type StepKernels,
} from './kernel-steps';

type Tensor = DeviceTensor<'float32'>;

/** What the mode `fast` has in 8 bits. */
export interface QuantisedMemory {
  /** A chunk's rows of D: what a linear layer reads, then the queries. Values [L, D/4] as int32, scales. */
  readonly rows: QuantisedHeads;
  /** A chunk's rows of the feed-forward's inner layer, [L, ffn/4]: in the memory of the clip's values where they fit. */
  readonly hidden: QuantisedHeads;
  /** The clip's keys less their mean, by the ranges of heads that a binding sees; none without fast attention. */
  readonly keys: readonly { readonly range: HeadRange; readonly of: QuantisedHeads }[];
  /** Of the keys of a range, [heads, headSize]. */
  readonly mean: Tensor | null;
}

/** Rows between two heads of the clip's keys: a multiple, so that every head starts at an aligned offset. */
const headRowStep = 16;

/**
 * The activations of a clip that kernels of our own compute: allocated once. All tokens lie in one tensor and
 * chunks are views of its rows.
 */
export class KernelMemory {
  /** S */
  readonly tokens: number;
  readonly conditioningTokens: number;
  readonly chunks: readonly Chunk[];
  /** A chunk's rows of D: what is normed, then what attention gives. */
  readonly y: Rows;
  /** A chunk's rows of D: what a linear layer gives. */
  readonly h: Rows;
  /**
   * A chunk's rows of the feed-forward's width, or of the residual stream: in the memory of the clip's keys
   * where they fit, which are made anew by the next self-attention.
   */
  readonly hidden: Rows;
  /** By head, [heads, S, headSize], so that one head's lie together. */
  readonly keys: HeadRows;
  readonly values: HeadRows;
  /** Null in other modes. */
  readonly quantised: QuantisedMemory | null;
  readonly cos: Tensor; // [S, headSize/2]
  readonly sin: Tensor;
  /** Counts groups of four results of the feed-forward's inner layer that were clamped to f16. */
  readonly overflows: DeviceTensor<'int32'>; // [1]
  /** The same to be read: only floats are. */
  readonly overflowBits: Tensor; // [1]
  readonly #scope: Scope;
  readonly #streams: readonly Tensor[]; // [S, D]
  readonly #residuals: readonly Tensor[]; // [S, D]
  readonly #modulations: readonly [noisy: Tensor, conditioning: Tensor]; // [6, D]
  #branch: Tensor | null = null;

  /** @throws KinoraError `OUT_OF_MEMORY`; then nothing stays on the device */
  constructor(
    readonly backend: Backend,
    kernels: StepKernels,
    config: TransformerConfig,
    size: LatentSize,
    { conditioningFrames, maxChunkTokens, guided, reusesBlocks = false }: ClipOptions,
  ) {
    const { storage } = kernels;
    const { num_attention_heads: heads, attention_head_dim: headSize } = config;
    const d = transformerDim(config);
    const perFrame = tokensPerFrame(config, size);
    this.tokens = perFrame * size.frames;
    this.conditioningTokens = perFrame * conditioningFrames;
    this.chunks = chunkTokens(size.frames, perFrame, conditioningFrames, maxChunkTokens);
    const most = Math.max(...this.chunks.map(({ count }) => count));
    const scope = new Scope(backend);
    this.#scope = scope;
    const float32 = (dims: readonly number[], data?: Float32Array) =>
      scope.float32(dims, 'activations', data);
    const stored = (dims: readonly number[]) =>
      scope.tensor(storage === 'f32' ? 'float32' : 'float16', dims, 'activations');
    const headRows = Math.ceil(this.tokens / headRowStep) * headRowStep;
    const byHead = (): HeadRows => ({
      tensor: stored([heads, headRows, headSize]),
      storage,
      headStride: headRows * headSize,
      rowStride: headSize,
    });
    try {
      const rows = () => float32([this.tokens, d]);
      this.#streams = Array.from({ length: guided ? 2 : 1 }, rows);
      this.#residuals = reusesBlocks ? this.#streams.map(rows) : [];
      this.keys = byHead();
      this.values = byHead();
      const { cos, sin } = rotaryTables(config, size);
      this.cos = float32([this.tokens, headSize / 2], cos);
      this.sin = float32([this.tokens, headSize / 2], sin);
      this.overflows = scope.tensor('int32', [1], 'activations');
      this.overflowBits = float32([1]);
      this.#modulations = [float32([6, d]), float32([6, d])];
      this.y = { tensor: stored([most, d]), first: 0, storage };
      this.h = { tensor: stored([most, d]), first: 0, storage };
      const widest = Math.max(config.ffn_dim, (d * 4) / storageBytes(storage));
      const fits = most * widest <= elementCount(this.keys.tensor.dims);
      const tensor = fits ? this.keys.tensor : stored([most, widest]);
      this.hidden = { tensor, first: 0, storage };
      this.quantised = this.#quantised(kernels, config, most);
    } catch (error) {
      scope.dispose();
      throw error;
    }
  }

  #quantised(
    { compute, fastLinear, fastAttention }: StepKernels,
    { num_attention_heads: heads, attention_head_dim: headSize, ffn_dim }: TransformerConfig,
    most: number,
  ): QuantisedMemory | null {
    if (!fastLinear && !fastAttention) return null;
    const scope = this.#scope;
    const packed = packedWidth(headSize);
    const make = (rows: number, words: number, scales: number): QuantisedHeads => ({
      values: scope.tensor('int32', [rows, words], 'activations'),
      scales: scope.float32([rows, scales], 'activations'),
    });
    const width = heads * headSize;
    const words = Math.max(width / 4, fastAttention ? heads * packed : 0);
    const ranges = fastAttention ? headRanges(compute, heads, headSize, this.keys) : [];
    return {
      rows: make(most, words, Math.max(Math.ceil(width / 32), heads)),
      hidden: {
        values:
          most * ffn_dim <= this.values.tensor.bytes
            ? this.values.tensor
            : scope.tensor('int32', [most, ffn_dim / 4], 'activations'),
        scales: scope.float32([most, Math.ceil(ffn_dim / 32)], 'activations'),
      },
      keys: ranges.map((range) => ({ range, of: make(range.count * this.tokens, packed, 1) })),
      mean: fastAttention ? scope.float32([heads, headSize], 'activations') : null,
    };
  }

  /** The residual stream of a guidance branch. */
  stream(index: number): Tensor {
    const stream = this.#streams[index];
    if (!stream) throw new TypeError('the clip was not made for guidance');
    return stream;
  }

  /** What the blocks added together. */
  residual(branch: number): Tensor {
    const residual = this.#residuals[branch];
    if (!residual) throw new TypeError('the clip was not made to reuse its blocks');
    return residual;
  }

  /** What modulates tokens: a block's table and the time, or the head's two rows. */
  modulation(conditioning: boolean): Tensor {
    return this.#modulations[conditioning ? 1 : 0];
  }

  /** Room for a LoRA's `x·downᵀ`; it grows to the most that any layer needs. */
  branch(values: number): Tensor {
    if (this.#branch && this.#branch.bytes >= 4 * values) return this.#branch;
    // What was submitted still has the old one.
    this.#branch?.dispose();
    this.#branch = this.backend.tensor('float32', [values], 'activations');
    return this.#branch;
  }

  dispose(): void {
    this.#branch?.dispose();
    this.#scope.dispose();
  }
}

import { type Backend, type Bindings, type DeviceTensor, Scope } from '../../gpu';
import type { Checkpoint } from '../../weights/checkpoint';
import { maxPromptTokens, type TransformerConfig, transformerDim } from '../config';
import { bindLinear, type LoaderOptions } from '../layers';
import type { ClipChunk, ClipMemory } from './clip-memory';
import * as graphs from './graphs';
import { type BlockWeights, loadTransformerWeights, type TransformerWeights } from './weights';

type Tensor = DeviceTensor<'float32'>;

/** What the blocks need of one timestep. */
export interface TimeEmbedding {
  readonly temb: Tensor; // [1, D]
  readonly modulation: Tensor; // [6, D]
}

/** A prompt's keys and values for every block, and the logit bias of its empty rows. */
export interface TextContext {
  readonly blocks: readonly { readonly keys: Tensor; readonly values: Tensor }[]; // [1, T, D]
  /** By chunk size L: [1, 1, L, T]. */
  readonly biases: ReadonlyMap<number, Tensor>;
  dispose(): void;
}

export interface VelocityOptions {
  /** Called after each block (from 0) of the first branch; for the parity check. */
  readonly afterBlock?: (block: number) => Promise<void>;
  readonly signal?: AbortSignal;
  /** Also computes the velocity of the held tokens, which the loop has no use for. */
  readonly includeHeld?: boolean;
}

/** The Wan2.2-TI2V transformer on a device. */
export class Transformer {
  private constructor(
    readonly backend: Backend,
    readonly config: TransformerConfig,
    readonly weights: TransformerWeights,
    readonly scope: Scope,
  ) {}

  /**
   * Uploads the weights. On failure nothing stays on the device.
   *
   * @throws KinoraError as the checkpoint's reads do
   */
  static async load(
    backend: Backend,
    checkpoint: Checkpoint,
    config: TransformerConfig,
    options: LoaderOptions,
  ): Promise<Transformer> {
    const scope = new Scope(backend);
    try {
      const weights = await loadTransformerWeights(scope, checkpoint, config, options);
      return new Transformer(backend, config, weights, scope);
    } catch (error) {
      scope.dispose();
      throw error;
    }
  }

  dispose(): void {
    this.scope.dispose();
  }

  /** Memory for a {@link TimeEmbedding}, to be filled by {@link embedTime} again and again. */
  createTimeEmbedding(scope: Scope): TimeEmbedding & { readonly sinusoid: Tensor } {
    const d = transformerDim(this.config);
    return {
      sinusoid: scope.float32([1, this.config.freq_dim], 'activations'),
      temb: scope.float32([1, d], 'activations'),
      modulation: scope.float32([6, d], 'activations'),
    };
  }

  /** Fills `target` for a timestep in [0, 1000]. */
  async embedTime(
    timestep: number,
    target: TimeEmbedding & { readonly sinusoid: Tensor },
  ): Promise<void> {
    const { timeLinear1, timeLinear2, timeProjection } = this.weights;
    this.backend.write(target.sinusoid, sinusoid(timestep, this.config.freq_dim));
    await this.backend.run(
      graphs.timeEmbeddingGraph(this.config, {
        linear1: timeLinear1.spec,
        linear2: timeLinear2.spec,
        projection: timeProjection.spec,
      }),
      {
        sinusoid: target.sinusoid,
        ...bindLinear('linear_1', timeLinear1),
        ...bindLinear('linear_2', timeLinear2),
        ...bindLinear('time_proj', timeProjection),
      },
      { temb: target.temb, modulation: target.modulation },
    );
  }

  /**
   * Computes the keys and values of a prompt for all blocks, once.
   *
   * The reference pads the embeddings to 512 zero rows that are *not* masked. Those rows are all
   * alike, so one of them, counted 512−L times through its logit, gives the same result (§3.4).
   *
   * @param embeds text embeddings [L, textDim], L ≤ 512
   * @param clips the context is for chunks of these clips
   */
  async prepareText(embeds: Float32Array, clip: ClipMemory): Promise<TextContext> {
    const { config, backend } = this;
    const d = transformerDim(config);
    const length = embeds.length / config.text_dim;
    const empty = maxPromptTokens - length;
    const rows = empty > 0 ? length + 1 : length; // T
    const scope = new Scope(backend);
    const temporary = new Scope(backend);
    try {
      const padded = new Float32Array(rows * config.text_dim);
      padded.set(embeds);
      const context = temporary.float32([rows, d], 'activations');
      const { textLinear1, textLinear2 } = this.weights;
      await backend.run(
        graphs.textEmbeddingGraph({ linear1: textLinear1.spec, linear2: textLinear2.spec }),
        {
          embeds: temporary.float32([rows, config.text_dim], 'activations', padded),
          ...bindLinear('linear_1', textLinear1),
          ...bindLinear('linear_2', textLinear2),
        },
        { context },
      );
      const blocks = [];
      for (const block of this.weights.blocks) {
        const keys = scope.float32([1, rows, d], 'activations');
        const values = scope.float32([1, rows, d], 'activations');
        await backend.run(
          graphs.textKeysValuesGraph(config, block.specs),
          {
            context,
            norm_k: block.attn2.normK,
            ...bindLinear('to_k', block.linears['attn2.to_k']),
            ...bindLinear('to_v', block.linears['attn2.to_v']),
          },
          { keys, values },
        );
        blocks.push({ keys, values });
      }
      const biases = new Map<number, Tensor>();
      for (const { count } of clip.chunks) {
        if (biases.has(count)) continue;
        const bias = new Float32Array(count * rows);
        if (empty > 0) {
          for (let i = rows - 1; i < bias.length; i += rows) bias[i] = Math.log(empty);
        }
        biases.set(count, scope.float32([1, 1, count, rows], 'activations', bias));
      }
      return { blocks, biases, dispose: () => scope.dispose() };
    } catch (error) {
      scope.dispose();
      throw error;
    } finally {
      temporary.dispose();
    }
  }

  /**
   * The flow velocity of a clip under one or two prompts.
   *
   * Everything up to block 0's cross-attention does not depend on the text and is computed once for
   * both branches (reference §4.7).
   *
   * @param tokens latents [S, C·ph·pw]; the held tokens carry the clean frame
   * @param times the embeddings of timestep 0 (held tokens) and t (the others)
   * @param branches a text and where its velocity goes, [S, C·ph·pw]
   */
  async velocity(
    clip: ClipMemory,
    tokens: Tensor,
    times: { readonly held: TimeEmbedding; readonly free: TimeEmbedding },
    branches: readonly { readonly text: TextContext; readonly velocity: Tensor }[],
    options: VelocityOptions = {},
  ): Promise<void> {
    const timeOf = (chunk: ClipChunk) => (chunk.held ? times.held : times.free);
    const first = this.weights.blocks[0];
    if (!first) throw new TypeError('the transformer has no block');
    if (branches.length > 1 && !clip.shared) {
      throw new TypeError('the clip was not made for guidance');
    }
    await this.#embed(clip, tokens);
    await this.#selfAttention(clip, first, timeOf);
    if (clip.shared) clip.hidden.copyTo(this.backend, clip.shared);
    for (const [branchIndex, { text, velocity }] of branches.entries()) {
      if (branchIndex > 0) clip.shared?.copyTo(this.backend, clip.hidden);
      for (const [index, block] of this.weights.blocks.entries()) {
        if (index > 0) await this.#selfAttention(clip, block, timeOf);
        await this.#crossFeedForward(clip, block, index, timeOf, text);
        // A bounded queue: cancelling works within a block, and no driver sees a minute of work.
        await this.backend.settle();
        options.signal?.throwIfAborted();
        if (branchIndex === 0) await options.afterBlock?.(index);
      }
      await this.#head(clip, timeOf, velocity, options.includeHeld ?? false);
    }
  }

  async #embed(clip: ClipMemory, tokens: Tensor): Promise<void> {
    const { patchEmbedding } = this.weights;
    const graph = graphs.patchEmbeddingGraph(patchEmbedding.spec);
    const width = patchEmbedding.spec.inFeatures;
    for (const [index, chunk] of clip.chunks.entries()) {
      const piece = clip.tokenPiece(chunk.count);
      this.backend.copy(tokens, chunk.start * width, piece, 0, chunk.count * width);
      const inputs = { tokens: piece, ...bindLinear('patch_embedding', patchEmbedding) };
      await this.backend.run(graph, inputs, { hidden: clip.hidden.get(index) });
    }
  }

  async #selfAttention(
    clip: ClipMemory,
    block: BlockWeights,
    timeOf: (chunk: ClipChunk) => TimeEmbedding,
  ): Promise<void> {
    const { config, backend } = this;
    const d = transformerDim(config);
    const common = (chunk: ClipChunk): Bindings => ({
      scale_shift_table: block.scaleShiftTable,
      modulation: timeOf(chunk).modulation,
      cos: chunk.cos,
      sin: chunk.sin,
    });
    const keysValues = graphs.keysValuesGraph(config, block.specs);
    for (const [index, chunk] of clip.chunks.entries()) {
      const { keys, values } = clip.pieces(chunk.count);
      await backend.run(
        keysValues,
        {
          ...common(chunk),
          hidden: clip.hidden.get(index),
          norm_k: block.attn1.normK,
          ...bindLinear('to_k', block.linears['attn1.to_k']),
          ...bindLinear('to_v', block.linears['attn1.to_v']),
        },
        { keys, values },
      );
      backend.copy(keys, 0, clip.keys, chunk.start * d, chunk.count * d);
      backend.copy(values, 0, clip.values, chunk.start * d, chunk.count * d);
    }
    const attention = graphs.selfAttentionGraph(config, block.specs);
    for (const [index, chunk] of clip.chunks.entries()) {
      await clip.hidden.advance(index, (hidden, result) =>
        backend.run(
          attention,
          {
            ...common(chunk),
            hidden,
            norm_q: block.attn1.normQ,
            keys: clip.keys,
            values: clip.values,
            ...bindLinear('to_q', block.linears['attn1.to_q']),
            ...bindLinear('to_out', block.linears['attn1.to_out.0']),
          },
          { result },
        ),
      );
    }
  }

  async #crossFeedForward(
    clip: ClipMemory,
    block: BlockWeights,
    blockIndex: number,
    timeOf: (chunk: ClipChunk) => TimeEmbedding,
    text: TextContext,
  ): Promise<void> {
    const graph = graphs.crossFeedForwardGraph(this.config, block.specs);
    const context = text.blocks[blockIndex];
    for (const [index, chunk] of clip.chunks.entries()) {
      const bias = text.biases.get(chunk.count);
      if (!context || !bias) throw new TypeError('the text was prepared for another clip');
      await clip.hidden.advance(index, (hidden, result) =>
        this.backend.run(
          graph,
          {
            hidden,
            scale_shift_table: block.scaleShiftTable,
            modulation: timeOf(chunk).modulation,
            'norm2.weight': block.norm2.weight,
            'norm2.bias': block.norm2.bias,
            norm_q: block.attn2.normQ,
            text_keys: context.keys,
            text_values: context.values,
            text_bias: bias,
            ...bindLinear('to_q', block.linears['attn2.to_q']),
            ...bindLinear('to_out', block.linears['attn2.to_out.0']),
            ...bindLinear('ffn_in', block.linears['ffn.net.0.proj']),
            ...bindLinear('ffn_out', block.linears['ffn.net.2']),
          },
          { result },
        ),
      );
    }
  }

  async #head(
    clip: ClipMemory,
    timeOf: (chunk: ClipChunk) => TimeEmbedding,
    velocity: Tensor,
    includeHeld: boolean,
  ): Promise<void> {
    const { projOut, scaleShiftTable } = this.weights;
    const graph = graphs.headGraph(this.config, projOut.spec);
    const width = projOut.spec.outFeatures;
    for (const [index, chunk] of clip.chunks.entries()) {
      if (chunk.held && !includeHeld) continue;
      const piece = clip.tokenPiece(chunk.count);
      const inputs = {
        hidden: clip.hidden.get(index),
        temb: timeOf(chunk).temb,
        scale_shift_table: scaleShiftTable,
        ...bindLinear('proj_out', projOut),
      };
      await this.backend.run(graph, inputs, { velocity: piece });
      this.backend.copy(piece, 0, velocity, chunk.start * width, chunk.count * width);
    }
  }
}

/**
 * Sinusoidal features of a timestep (reference §3.3): `[cos(t·f) ‖ sin(t·f)]` with
 * `f_i = 10000^(−i/half)`. The frequencies are rounded to f32 first, as the reference computes them.
 */
export function sinusoid(timestep: number, features: number): Float32Array {
  const half = features / 2;
  const out = new Float32Array(features);
  for (let i = 0; i < half; i++) {
    const frequency = Math.fround(Math.exp((-Math.log(10000) * i) / half));
    out[i] = Math.cos(timestep * frequency);
    out[half + i] = Math.sin(timestep * frequency);
  }
  return out;
}

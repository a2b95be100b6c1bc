import { type Backend, type Bindings, type DeviceTensor, Scope } from '../../../gpu';
import { allResident, type Residency } from '../../../pipeline/memory/plan';
import type { BlockWork } from '../../../pipeline/model';
import type { Checkpoint } from '../../../weights';
import { maxPromptTokens, type TransformerConfig, transformerDim } from '../config';
import type { ReadOptions } from '../layer-data';
import { bindLinear } from '../layers';
import { BlockStore } from './blocks';
import type { ChunkedTensor, ClipChunk, ClipMemory } from './clip-memory';
import * as graphs from './graphs';
import { type BlockWeights, loadNonBlockWeights, type TransformerWeights } from './weights';

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

/** One guidance branch of a pass. */
export interface Branch {
  readonly text: TextContext;
  readonly velocity: Tensor; // [S, C·ph·pw]
  /** `compute` when absent. */
  readonly blocks?: BlockWork;
}

/** Options of one pass of the transformer. */
export interface VelocityOptions {
  /** Called after each block (from 0) of the first branch; for the parity check. */
  readonly afterBlock?: (block: number) => Promise<void>;
  readonly signal?: AbortSignal;
  /** Also computes the velocity of the conditioning tokens, which the denoising loop does not use. */
  readonly includeConditioning?: boolean;
}

/** The Wan2.2-TI2V transformer on a device. */
export class Transformer {
  private constructor(
    readonly backend: Backend,
    readonly config: TransformerConfig,
    readonly weights: TransformerWeights,
    readonly blocks: BlockStore,
    readonly scope: Scope,
  ) {}

  /**
   * Uploads the weights that stay. On failure nothing stays on the device.
   *
   * Streamed blocks of a checkpoint that is no store are quantised again at every read. Only bundled models,
   * which are small, are run that way.
   *
   * @param residency which blocks those are; all of them when absent
   * @throws KinoraError as the checkpoint's reads do
   */
  static async load(
    backend: Backend,
    checkpoint: Checkpoint,
    config: TransformerConfig,
    options: ReadOptions,
    residency: Residency = allResident,
  ): Promise<Transformer> {
    const scope = new Scope(backend);
    try {
      const weights = await loadNonBlockWeights(scope, checkpoint, config, options);
      const blocks = await BlockStore.load(scope, checkpoint, config, options, residency);
      return new Transformer(backend, config, weights, blocks, scope);
    } catch (error) {
      scope.dispose();
      throw error;
    }
  }

  /**
   * Stops reading streamed blocks ahead; resolves when no read is pending. The memory stays allocated.
   */
  stop(): Promise<void> {
    return this.blocks.stop();
  }

  dispose(): void {
    // Data that is still being read is dropped.
    void this.blocks.stop();
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

  /** {@link prepareTexts} for a single prompt. */
  async prepareText(embeds: Float32Array, clip: ClipMemory): Promise<TextContext> {
    const [text] = await this.prepareTexts([embeds], clip);
    if (!text) throw new TypeError('there is no text');
    return text;
  }

  /**
   * Computes the keys and values of prompts for all blocks, once.
   *
   * The model was trained with embeddings padded to 512 zero rows that are *not* masked. Those rows are all
   * alike, so one of them, counted 512−L times through its logit, gives the same result (README,
   * "Empty text rows").
   *
   * @param prompts text embeddings [L, textDim] each, L ≤ 512
   * @param clip the context is for chunks of this clip
   */
  async prepareTexts(prompts: readonly Float32Array[], clip: ClipMemory): Promise<TextContext[]> {
    const { config, backend } = this;
    const d = transformerDim(config);
    const scopes: Scope[] = [];
    const temporary = new Scope(backend);
    try {
      const texts = [];
      for (const embeds of prompts) {
        const scope = new Scope(backend);
        scopes.push(scope);
        const empty = maxPromptTokens - embeds.length / config.text_dim;
        const rows = embeds.length / config.text_dim + (empty > 0 ? 1 : 0); // T
        const context = await this.#embedText(temporary, embeds, rows);
        texts.push({ scope, empty, rows, context, blocks: [] as TextContext['blocks'][number][] });
      }
      for (let index = 0; index < this.blocks.count; index++) {
        const block = await this.blocks.get(index);
        const graph = graphs.textKeysValuesGraph(config, block.specs);
        for (const { scope, rows, context, blocks } of texts) {
          const keys = scope.float32([1, rows, d], 'activations');
          const values = scope.float32([1, rows, d], 'activations');
          const inputs = {
            context,
            norm_k: block.attn2.normK,
            ...bindLinear('to_k', block.linears['attn2.to_k']),
            ...bindLinear('to_v', block.linears['attn2.to_v']),
          };
          await backend.run(graph, inputs, { keys, values });
          blocks.push({ keys, values });
        }
      }
      return texts.map(({ scope, empty, rows, blocks }) => ({
        blocks,
        biases: emptyRowBiases(scope, clip, rows, empty),
        dispose: () => scope.dispose(),
      }));
    } catch (error) {
      for (const scope of scopes) scope.dispose();
      throw error;
    } finally {
      temporary.dispose();
    }
  }

  async #embedText(scope: Scope, embeds: Float32Array, rows: number): Promise<Tensor> {
    const { config, backend } = this;
    const { textLinear1, textLinear2 } = this.weights;
    const padded = new Float32Array(rows * config.text_dim);
    padded.set(embeds);
    const context = scope.float32([rows, transformerDim(config)], 'activations');
    await backend.run(
      graphs.textEmbeddingGraph({ linear1: textLinear1.spec, linear2: textLinear2.spec }),
      {
        embeds: scope.float32([rows, config.text_dim], 'activations', padded),
        ...bindLinear('linear_1', textLinear1),
        ...bindLinear('linear_2', textLinear2),
      },
      { context },
    );
    return context;
  }

  /**
   * The flow velocity of a clip under one or two prompts.
   *
   * Everything up to block 0's cross-attention does not depend on the text and is computed once for
   * both branches (README, "Guidance"). Both then go through a block one after the other, so that a
   * streamed block is read once. A branch that reuses needs the patch embedding and the head only.
   *
   * @param tokens latents [S, C·ph·pw]; the conditioning tokens have the given frame
   * @param times the embeddings of timestep 0 (conditioning tokens) and t (the others)
   * @param branches a text, where its velocity goes, [S, C·ph·pw], and what is done with the blocks
   */
  async velocity(
    clip: ClipMemory,
    tokens: Tensor,
    times: { readonly conditioning: TimeEmbedding; readonly noisy: TimeEmbedding },
    branches: readonly Branch[],
    options: VelocityOptions = {},
  ): Promise<void> {
    const { includeConditioning = false } = options;
    const timeOf = (chunk: ClipChunk) => (chunk.conditioning ? times.conditioning : times.noisy);
    await this.#embed(clip, tokens);
    for (const [index, { velocity, blocks }] of branches.entries()) {
      if (blocks !== 'reuse') continue;
      const hidden = this.#reused(clip, residualOf(clip, index));
      await this.#head(clip, hidden, timeOf, velocity, includeConditioning);
    }
    const computed = branches.flatMap((branch, index) =>
      branch.blocks === 'reuse' ? [] : [{ ...branch, index }],
    );
    const streams = [clip.hidden, clip.second];
    const runs = computed.map(({ text, velocity, blocks, index }, branch) => {
      const hidden = streams[branch];
      if (!hidden) throw new TypeError('the clip was not made for guidance');
      const residual = blocks === 'keep' ? residualOf(clip, index) : null;
      return { branch, text, velocity, hidden, residual };
    });
    if (runs.length === 0) return;
    for (const { residual } of runs) if (residual) clip.hidden.copyTo(this.backend, residual);
    for (let index = 0; index < this.blocks.count; index++) {
      const block = await this.blocks.get(index);
      if (index === 0) {
        await this.#selfAttention(clip, clip.hidden, block, timeOf);
        if (runs.length > 1 && clip.second) clip.hidden.copyTo(this.backend, clip.second);
      }
      for (const { branch, text, hidden } of runs) {
        if (index > 0) await this.#selfAttention(clip, hidden, block, timeOf);
        await this.#crossFeedForward(clip, hidden, block, index, timeOf, text);
        // Waiting bounds the submitted work, so that cancelling works within a block.
        await this.backend.settle();
        options.signal?.throwIfAborted();
        if (branch === 0) await options.afterBlock?.(index);
      }
    }
    for (const { hidden, velocity, residual } of runs) {
      if (residual) await this.#keepResidual(clip, hidden, residual);
      const state = async (index: number) => hidden.get(index);
      await this.#head(clip, state, timeOf, velocity, includeConditioning);
    }
  }

  /** Gives the chunks as the blocks would have left them, each until the next one is asked for. */
  #reused(clip: ClipMemory, residual: ChunkedTensor): (index: number) => Promise<Tensor> {
    const graph = graphs.reuseGraph(transformerDim(this.config));
    return async (index) => {
      const hidden = clip.hidden.spare(index);
      const inputs = { embedded: clip.hidden.get(index), residual: residual.get(index) };
      await this.backend.run(graph, inputs, { hidden });
      return hidden;
    };
  }

  /** `residual`, which has what went into the blocks, becomes what they added to it. */
  async #keepResidual(clip: ClipMemory, stream: ChunkedTensor, residual: ChunkedTensor) {
    const graph = graphs.residualGraph(transformerDim(this.config));
    for (const index of clip.chunks.keys()) {
      await residual.advance(index, (embedded, result) =>
        this.backend.run(graph, { hidden: stream.get(index), embedded }, { residual: result }),
      );
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
    stream: ChunkedTensor,
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
          hidden: stream.get(index),
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
      await stream.advance(index, (hidden, result) =>
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
    stream: ChunkedTensor,
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
      await stream.advance(index, (hidden, result) =>
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
    hiddenOf: (index: number) => Promise<Tensor>,
    timeOf: (chunk: ClipChunk) => TimeEmbedding,
    velocity: Tensor,
    includeConditioning: boolean,
  ): Promise<void> {
    const { projOut, scaleShiftTable } = this.weights;
    const graph = graphs.headGraph(this.config, projOut.spec);
    const width = projOut.spec.outFeatures;
    for (const [index, chunk] of clip.chunks.entries()) {
      if (chunk.conditioning && !includeConditioning) continue;
      const piece = clip.tokenPiece(chunk.count);
      const inputs = {
        hidden: await hiddenOf(index),
        temb: timeOf(chunk).temb,
        scale_shift_table: scaleShiftTable,
        ...bindLinear('proj_out', projOut),
      };
      await this.backend.run(graph, inputs, { velocity: piece });
      this.backend.copy(piece, 0, velocity, chunk.start * width, chunk.count * width);
    }
  }
}

function residualOf(clip: ClipMemory, branch: number): ChunkedTensor {
  const residual = clip.residuals[branch];
  if (!residual) throw new TypeError('the clip was not made to reuse its blocks');
  return residual;
}

/** By chunk size L: 0 but for the last key, which stands for `empty` rows at once, [1, 1, L, T]. */
function emptyRowBiases(
  scope: Scope,
  clip: ClipMemory,
  rows: number,
  empty: number,
): Map<number, Tensor> {
  const biases = new Map<number, Tensor>();
  for (const { count } of clip.chunks) {
    if (biases.has(count)) continue;
    const bias = new Float32Array(count * rows);
    if (empty > 0) {
      for (let i = rows - 1; i < bias.length; i += rows) bias[i] = Math.log(empty);
    }
    biases.set(count, scope.float32([1, 1, count, rows], 'activations', bias));
  }
  return biases;
}

/**
 * Sinusoidal features of a timestep: `[cos(t·f) ‖ sin(t·f)]` with `f_i = 10000^(−i/half)`. The frequencies
 * are rounded to f32 first, as diffusers' `get_timestep_embedding` computes them.
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

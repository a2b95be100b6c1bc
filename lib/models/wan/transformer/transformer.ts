import {
  type Backend,
  type DeviceTensor,
  elementCount,
  handleMessages,
  kernelSet,
  openExecutor,
  Scope,
} from '../../../gpu';
import type { LatentSize } from '../../../pipeline/latents';
import { allResident, type Residency } from '../../../pipeline/memory/memory-plan';
import type { BlockWork } from '../../../pipeline/model';
import type { Checkpoint } from '../../../weights';
import type { ReadOptions } from '../../layers/layer-data';
import { bindLinear } from '../../layers/linear';
import { maxPromptTokens } from '../../umt5/text-encoder-config';
import type { TransformerConfig } from '../config-schemas';
import { BlockStore } from './blocks';
import {
  Clip,
  type ClipOptions,
  type TextContext,
  type TimeEmbedding,
  type Times,
  type TokenRows,
  tokensOf,
} from './clip';
import { clipGraphs, imageGraph, sizesOf } from './graphs';
import * as network from './transformer-network';
import {
  loadNonBlockWeights,
  type TransformerWeights,
  textSizes,
  timeSizes,
} from './transformer-weights';

type Tensor = DeviceTensor<'float32'>;

/** One guidance branch of a pass. */
export interface Branch {
  readonly text: TextContext;
  /** Where the result goes. */
  readonly velocity: TokenRows;
  /** `compute` when absent. */
  readonly blocks?: BlockWork;
}

/** Options of one pass of the transformer. */
export interface VelocityOptions {
  /** Called after each block (from 0) of the first branch; for the parity check. */
  readonly afterBlock?: (block: number) => Promise<void>;
  readonly signal?: AbortSignal | undefined;
}

/** A Wan transformer on a device. */
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
    const form = { ...options, plainFactors: !kernelSet(backend.kernels) };
    try {
      const weights = await loadNonBlockWeights(scope, checkpoint, config, form);
      const blocks = await BlockStore.load(scope, checkpoint, config, form, residency);
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

  /**
   * Takes the memory of a clip. Dispose it when the clip is denoised.
   *
   * @throws KinoraError `OUT_OF_MEMORY`; `KERNELS_UNAVAILABLE`, which the memory plan has asked for before; then
   * nothing of it stays on the device
   */
  async createClip(size: LatentSize, options: ClipOptions): Promise<Clip> {
    const { backend, config, weights } = this;
    const tokens = tokensOf(config, size, options);
    const adapted = clipGraphs(config, this.blocks.options, options.reusesBlocks);
    const sizes = sizesOf(tokens, adapted, undefined, options.imageRows);
    const executor = await openExecutor(backend, adapted.graphs, sizes);
    return new Clip(backend, executor, config, weights, size, tokens, options);
  }

  /** Memory for a {@link TimeEmbedding}, to be filled by {@link embedTime} again and again. */
  createTimeEmbedding(scope: Scope): TimeEmbedding & { readonly sinusoid: Tensor } {
    return scope.all(timeSizes(this.config), 'activations');
  }

  /** Fills `target` for a timestep in [0, 1000]. */
  async embedTime(
    { executor }: Clip,
    timestep: number,
    target: TimeEmbedding & { readonly sinusoid: Tensor },
  ): Promise<void> {
    const { timeLinear1, timeLinear2, timeProjection } = this.weights;
    this.backend.write(target.sinusoid, network.sinusoid(timestep, this.config.freq_dim));
    await executor.run(
      network.timeEmbedding(this.config, {
        linear1: timeLinear1.spec,
        linear2: timeLinear2.spec,
        projection: timeProjection.spec,
      }),
      {
        ...target,
        ...bindLinear('time_embedder.linear_1', timeLinear1),
        ...bindLinear('time_embedder.linear_2', timeLinear2),
        ...bindLinear('time_proj', timeProjection),
      },
    );
  }

  /**
   * Embeds the features of an image, which the clip's blocks attend to.
   *
   * @param features [I, C] of the image encoder
   */
  async embedImage(clip: Clip, features: Float32Array): Promise<void> {
    const { backend, config } = this;
    const { imageEmbedding } = this.weights;
    if (!imageEmbedding || !clip.image) throw new TypeError('the blocks attend to no image');
    const { linear1, linear2, norms } = imageEmbedding;
    const adapted = imageGraph(config, this.blocks.options);
    const { ranks } = adapted;
    const rows = features.length / linear1.spec.inFeatures;
    const sizes = { chunks: [], sizes: { I: rows }, classed: new Set<string>(), ranks };
    const executor = await openExecutor(backend, adapted.graphs, sizes, 'f32');
    const dims = [rows, linear1.spec.inFeatures];
    const input = backend.tensor('float32', dims, 'activations', features);
    try {
      const graph = network.imageEmbedding(config, {
        linear1: linear1.spec,
        linear2: linear2.spec,
      });
      await executor.run(graph, {
        features: input,
        image: clip.image,
        ...norms,
        ...bindLinear('image_embedder.linear_1', linear1),
        ...bindLinear('image_embedder.linear_2', linear2),
      });
    } finally {
      input.dispose();
      executor.dispose();
    }
  }

  /** {@link prepareTexts} for a single prompt. */
  async prepareText(clip: Clip, embeds: Float32Array): Promise<TextContext> {
    const [text] = await this.prepareTexts(clip, [embeds]);
    if (!text) throw new TypeError('there is no text');
    return text;
  }

  /**
   * Embeds prompts. Their keys and values are computed block by block in every pass: for two prompts of
   * 512 tokens they would take 0.35 GiB for all blocks of the 5B, and cost 0.1 % of a pass over its longest clip.
   *
   * The model was trained with embeddings padded to 512 zero rows that are *not* masked. Those rows are all
   * alike, so one of them, counted 512−L times through its logit, gives the same result (README,
   * "Empty text rows").
   *
   * @param prompts text embeddings [L, textDim] each, L ≤ 512
   */
  async prepareTexts(clip: Clip, prompts: readonly Float32Array[]): Promise<TextContext[]> {
    const { config, backend } = this;
    const scopes: Scope[] = [];
    try {
      const texts: TextContext[] = [];
      for (const embeds of prompts) {
        const scope = new Scope(backend);
        scopes.push(scope);
        const empty = maxPromptTokens - embeds.length / config.text_dim;
        texts.push({
          lastBias: empty > 0 ? Math.log(empty) : 0,
          context: await this.#embedText(clip, scope, embeds),
          dispose: () => scope.dispose(),
        });
      }
      return texts;
    } catch (error) {
      for (const scope of scopes) scope.dispose();
      throw error;
    }
  }

  async #embedText({ executor }: Clip, scope: Scope, embeds: Float32Array): Promise<Tensor> {
    const { config, backend } = this;
    const { textLinear1, textLinear2 } = this.weights;
    const sizes = textSizes(config, embeds.length / config.text_dim);
    const padded = new Float32Array(elementCount(sizes.embeds));
    padded.set(embeds);
    const input = backend.tensor('float32', sizes.embeds, 'activations', padded);
    try {
      const context = scope.float32(sizes.context, 'activations');
      await executor.run(
        network.textEmbedding({ linear1: textLinear1.spec, linear2: textLinear2.spec }),
        {
          embeds: input,
          context,
          ...bindLinear('text_embedder.linear_1', textLinear1),
          ...bindLinear('text_embedder.linear_2', textLinear2),
        },
      );
      return context;
    } finally {
      input.dispose();
    }
  }

  /**
   * The flow velocity of a clip under one or two prompts.
   *
   * Everything up to block 0's cross-attention does not depend on the text and is computed once for
   * both branches (README, "Guidance"). Both then go through a block one after the other, so that a
   * streamed block is read once. A branch that reuses needs the patch embedding and the head only.
   *
   * @param tokens latents; the conditioning tokens have the given frame, and may not be left out
   * @param times the embeddings of timestep 0 (conditioning tokens) and t (the others)
   * @param branches a text, where its velocity goes, and what is done with the blocks
   */
  async velocity(
    clip: Clip,
    tokens: TokenRows,
    times: Times,
    branches: readonly Branch[],
    options: VelocityOptions = {},
  ): Promise<void> {
    await clip.embed(tokens);
    for (const [reused, { velocity, blocks }] of branches.entries()) {
      if (blocks === 'reuse') await clip.head({ reused }, times, velocity);
    }
    const runs = branches
      .map((branch, index) => ({ ...branch, index }))
      .filter(({ blocks }) => blocks !== 'reuse');
    if (runs.length === 0) return;
    for (const { blocks, index } of runs) if (blocks === 'keep') clip.holdEmbedded(index);
    for (let index = 0; index < this.blocks.count; index++) {
      const block = await this.blocks.get(index);
      if (index === 0) {
        await clip.selfAttention(0, block, times);
        if (runs.length > 1) clip.fork();
      }
      for (const [stream, { text }] of runs.entries()) {
        if (index > 0) await clip.selfAttention(stream, block, times);
        await clip.crossFeedForward(stream, block, times, text);
        // A cancellation may come in.
        await handleMessages();
        options.signal?.throwIfAborted();
        if (stream === 0) await options.afterBlock?.(index);
      }
    }
    for (const [stream, { velocity, blocks, index }] of runs.entries()) {
      if (blocks === 'keep') await clip.keepResidual(index, stream);
      await clip.head({ stream }, times, velocity);
    }
    await clip.finish();
  }
}

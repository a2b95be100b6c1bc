import type { Backend, Bindings, DeviceTensor, Scope } from '../../../gpu';
import type { LatentSize } from '../../../pipeline/latents';
import { type TransformerConfig, transformerDim } from '../config';
import { bindLinear } from '../layers';
import {
  type Clip,
  type ClipOptions,
  type HeadSource,
  placeOf,
  type TextContext,
  type TextKeysValues,
  type Times,
  type TokenRows,
} from './clip';
import { type ChunkedTensor, type ClipMemory, createClipMemory } from './clip-memory';
import * as graphs from './graphs';
import type { BlockWeights, TransformerWeights } from './weights';

type Tensor = DeviceTensor<'float32'>;

/** A clip whose steps are graphs of the runtime, in f32. */
export class GraphClip implements Clip {
  readonly #memory: ClipMemory;
  /** By text and chunk size L: 0 but for the last key, [1, 1, L, T]. */
  readonly #biases = new Map<TextContext, Map<number, Tensor>>();

  /** @throws KinoraError `OUT_OF_MEMORY`; then nothing stays on the device */
  constructor(
    readonly backend: Backend,
    readonly config: TransformerConfig,
    readonly weights: TransformerWeights,
    size: LatentSize,
    options: ClipOptions,
  ) {
    this.#memory = createClipMemory(backend, config, size, options);
  }

  get size(): LatentSize {
    return this.#memory.size;
  }

  get tokens(): number {
    return this.#memory.tokens;
  }

  get conditioningTokens(): number {
    return this.#memory.conditioningTokens;
  }

  createTextMemory(scope: Scope, rows: number): TextKeysValues {
    const make = () => scope.float32([1, rows, transformerDim(this.config)], 'activations');
    return { keys: make(), values: make() };
  }

  async embed(tokens: TokenRows): Promise<void> {
    const { patchEmbedding } = this.weights;
    const graph = graphs.patchEmbeddingGraph(patchEmbedding.spec);
    const width = patchEmbedding.spec.inFeatures;
    for (const [index, chunk] of this.#memory.chunks.entries()) {
      const from = placeOf(tokens, chunk, this.conditioningTokens);
      if (!from) continue;
      const piece = this.#memory.tokenPiece(chunk.count);
      this.backend.copy(from.tensor, from.start * width, piece, 0, chunk.count * width);
      const inputs = { tokens: piece, ...bindLinear('patch_embedding', patchEmbedding) };
      await this.backend.run(graph, inputs, { hidden: this.#memory.hidden.get(index) });
    }
  }

  fork(): void {
    this.#memory.hidden.copyTo(this.backend, this.#stream(1));
  }

  async selfAttention(index: number, block: BlockWeights, times: Times): Promise<void> {
    const { config, backend } = this;
    const memory = this.#memory;
    const stream = this.#stream(index);
    const d = transformerDim(config);
    const common = (chunk: ClipMemory['chunks'][number]): Bindings => ({
      scale_shift_table: block.scaleShiftTable,
      modulation: timeOf(chunk, times).modulation,
      cos: chunk.cos,
      sin: chunk.sin,
    });
    const keysValues = graphs.keysValuesGraph(config, block.specs);
    for (const [at, chunk] of memory.chunks.entries()) {
      const { keys, values } = memory.pieces(chunk.count);
      await backend.run(
        keysValues,
        {
          ...common(chunk),
          hidden: stream.get(at),
          norm_k: block.attn1.normK,
          ...bindLinear('to_k', block.linears['attn1.to_k']),
          ...bindLinear('to_v', block.linears['attn1.to_v']),
        },
        { keys, values },
      );
      backend.copy(keys, 0, memory.keys, chunk.start * d, chunk.count * d);
      backend.copy(values, 0, memory.values, chunk.start * d, chunk.count * d);
    }
    const attention = graphs.selfAttentionGraph(config, block.specs);
    for (const [at, chunk] of memory.chunks.entries()) {
      await stream.advance(at, (hidden, result) =>
        backend.run(
          attention,
          {
            ...common(chunk),
            hidden,
            norm_q: block.attn1.normQ,
            keys: memory.keys,
            values: memory.values,
            ...bindLinear('to_q', block.linears['attn1.to_q']),
            ...bindLinear('to_out', block.linears['attn1.to_out.0']),
          },
          { result },
        ),
      );
    }
  }

  async crossFeedForward(
    index: number,
    block: BlockWeights,
    times: Times,
    text: TextContext,
  ): Promise<void> {
    await this.#textKeysValues(text, block);
    const graph = graphs.crossFeedForwardGraph(this.config, block.specs);
    const stream = this.#stream(index);
    for (const [at, chunk] of this.#memory.chunks.entries()) {
      const bias = this.#biasOf(text, chunk.count);
      await stream.advance(at, (hidden, result) =>
        this.backend.run(
          graph,
          {
            hidden,
            scale_shift_table: block.scaleShiftTable,
            modulation: timeOf(chunk, times).modulation,
            'norm2.weight': block.norm2.weight,
            'norm2.bias': block.norm2.bias,
            norm_q: block.attn2.normQ,
            text_keys: text.keys,
            text_values: text.values,
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

  async #textKeysValues(
    { context, keys, values }: TextContext,
    { attn2, linears, specs }: BlockWeights,
  ): Promise<void> {
    const inputs = {
      context,
      norm_k: attn2.normK,
      ...bindLinear('to_k', linears['attn2.to_k']),
      ...bindLinear('to_v', linears['attn2.to_v']),
    };
    const graph = graphs.textKeysValuesGraph(this.config, specs);
    await this.backend.run(graph, inputs, { keys, values });
  }

  holdEmbedded(branch: number): void {
    this.#memory.hidden.copyTo(this.backend, this.#residual(branch));
  }

  async keepResidual(branch: number, index: number): Promise<void> {
    const graph = graphs.residualGraph(transformerDim(this.config));
    const [stream, residual] = [this.#stream(index), this.#residual(branch)];
    for (const at of this.#memory.chunks.keys()) {
      await residual.advance(at, (embedded, result) =>
        this.backend.run(graph, { hidden: stream.get(at), embedded }, { residual: result }),
      );
    }
  }

  async head(source: HeadSource, times: Times, velocity: TokenRows): Promise<void> {
    const { projOut, scaleShiftTable } = this.weights;
    const graph = graphs.headGraph(this.config, projOut.spec);
    const width = projOut.spec.outFeatures;
    for (const [index, chunk] of this.#memory.chunks.entries()) {
      const to = placeOf(velocity, chunk, this.conditioningTokens);
      if (!to) continue;
      const piece = this.#memory.tokenPiece(chunk.count);
      const inputs = {
        hidden: await this.#chunkOf(source, index),
        temb: timeOf(chunk, times).temb,
        scale_shift_table: scaleShiftTable,
        ...bindLinear('proj_out', projOut),
      };
      await this.backend.run(graph, inputs, { velocity: piece });
      this.backend.copy(piece, 0, to.tensor, to.start * width, chunk.count * width);
    }
  }

  /** The runtime counts nothing. */
  async finish(): Promise<void> {}

  async read(): Promise<Float32Array> {
    const d = transformerDim(this.config);
    const all = new Float32Array(this.tokens * d);
    for (const [index, { start }] of this.#memory.chunks.entries()) {
      all.set(await this.backend.read(this.#memory.hidden.get(index)), start * d);
    }
    return all;
  }

  dispose(): void {
    for (const tensors of this.#biases.values()) {
      for (const tensor of tensors.values()) tensor.dispose();
    }
    this.#biases.clear();
    this.#memory.dispose();
  }

  /** A chunk as the blocks left it, or would have: that one is there until the next is asked for. */
  async #chunkOf(source: HeadSource, index: number): Promise<Tensor> {
    if ('stream' in source) return this.#stream(source.stream).get(index);
    const graph = graphs.reuseGraph(transformerDim(this.config));
    const { hidden: embedded } = this.#memory;
    const hidden = embedded.spare(index);
    const residual = this.#residual(source.reused).get(index);
    await this.backend.run(graph, { embedded: embedded.get(index), residual }, { hidden });
    return hidden;
  }

  #stream(index: number): ChunkedTensor {
    const stream = [this.#memory.hidden, this.#memory.second][index];
    if (!stream) throw new TypeError('the clip was not made for guidance');
    return stream;
  }

  #residual(branch: number): ChunkedTensor {
    const residual = this.#memory.residuals[branch];
    if (!residual) throw new TypeError('the clip was not made to reuse its blocks');
    return residual;
  }

  #biasOf(text: TextContext, count: number): Tensor {
    const { rows, lastBias } = text;
    const biases = this.#biases.get(text) ?? new Map<number, Tensor>();
    this.#biases.set(text, biases);
    const known = biases.get(count);
    if (known) return known;
    const values = new Float32Array(count * rows);
    for (let i = rows - 1; i < values.length; i += rows) values[i] = lastBias;
    const bias = this.backend.tensor('float32', [1, 1, count, rows], 'activations', values);
    biases.set(count, bias);
    return bias;
  }
}

function timeOf(chunk: { readonly conditioning: boolean }, times: Times) {
  return chunk.conditioning ? times.conditioning : times.noisy;
}

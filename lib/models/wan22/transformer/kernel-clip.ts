import { type Backend, type DeviceTensor, elementCount, type Scope } from '../../../gpu';
import type { Dispatch, KernelFailure } from '../../../gpu/kernels';
import type { LatentSize } from '../../../pipeline/latents';
import { type TransformerConfig, transformerDim } from '../config';
import {
  type Clip,
  type ClipOptions,
  type HeadSource,
  placeOf,
  type TextContext,
  type TextMemory,
  type Times,
  type TokenRows,
} from './clip';
import { KernelJobs, rowsOf } from './kernel-jobs';
import { KernelMemory } from './kernel-memory';
import type { Rows, StepKernels } from './kernel-steps';
import type { BlockWeights, TransformerWeights } from './weights';

type Tensor = DeviceTensor<'float32'>;

/**
 * A clip whose steps are kernels of our own. Nothing is copied: the residual stream is f32 and is updated in
 * place, and a chunk's scratch is used again by the next one.
 */
export class KernelClip implements Clip {
  readonly #memory: KernelMemory;
  readonly #jobs: KernelJobs;
  /** What was counted up to the last pass. */
  #overflows = 0;
  /** Where dispatches go instead of to the device, while they are only listed. */
  #listed: Dispatch[] | null = null;

  /** @throws KinoraError `OUT_OF_MEMORY`; then nothing stays on the device */
  constructor(
    readonly backend: Backend,
    readonly kernels: StepKernels,
    readonly config: TransformerConfig,
    readonly weights: TransformerWeights,
    readonly size: LatentSize,
    options: ClipOptions,
  ) {
    this.#memory = new KernelMemory(backend, kernels, config, size, options);
    this.#jobs = new KernelJobs(kernels, config, this.#memory);
  }

  get tokens(): number {
    return this.#memory.tokens;
  }

  get conditioningTokens(): number {
    return this.#memory.conditioningTokens;
  }

  /**
   * Compiles in parallel what the steps of a block, embedding and head need.
   *
   * @returns the kernels that the device refuses
   */
  async compile(block: BlockWeights): Promise<readonly KernelFailure[]> {
    const { keys } = this.#memory;
    const [stream, modulation] = [this.#memory.stream(0), this.#memory.modulation(false)];
    // The tensors are not looked at.
    const time = { temb: modulation, modulation };
    const times = { conditioning: time, noisy: time };
    const memory = { keys: keys.tensor, values: keys.tensor };
    const text = { rows: 1, lastBias: 0, context: stream, memory, dispose: () => undefined };
    const tokens = { conditioning: stream, free: stream };
    const listed: Dispatch[] = [];
    this.#listed = listed;
    try {
      await this.embed(tokens);
      await this.selfAttention(0, block, times);
      await this.crossFeedForward(0, block, times, text);
      await this.head({ stream: 0 }, times, tokens);
    } finally {
      this.#listed = null;
    }
    const kernels = new Map(listed.map(({ kernel }) => [kernel.key, kernel]));
    return this.kernels.compute.compile([...kernels.values()]);
  }

  createTextMemory(scope: Scope, rows: number): TextMemory {
    const dtype = this.kernels.storage === 'f32' ? 'float32' : 'float16';
    const make = () => scope.tensor(dtype, [rows, transformerDim(this.config)], 'activations');
    return { keys: make(), values: make() };
  }

  async embed(tokens: TokenRows): Promise<void> {
    const jobs = this.#jobs;
    const { patchEmbedding } = this.weights;
    const stream = this.#memory.stream(0);
    for (const chunk of this.#memory.chunks) {
      const from = placeOf(tokens, chunk, this.conditioningTokens);
      if (!from) continue;
      const [x, y] = [rowsOf(from.tensor, from), rowsOf(stream, chunk)];
      await this.#run(jobs.linear(patchEmbedding, x, y, chunk.count));
    }
  }

  fork(): void {
    this.#copy(this.#memory.stream(0), this.#memory.stream(1));
  }

  async selfAttention(index: number, block: BlockWeights, times: Times): Promise<void> {
    const jobs = this.#jobs;
    const { linears, attn1 } = block;
    const { chunks, y, h, keys, values } = this.#memory;
    const stream = this.#memory.stream(index);
    jobs.makeRoom(block);
    await this.#run(jobs.modulate(block, times));
    for (const chunk of chunks) {
      const { count } = chunk;
      const [toK, toV] = [linears['attn1.to_k'], linears['attn1.to_v']];
      const normed = jobs.quantise(y, count, toK, toV);
      await this.#run(
        jobs.modulatedNorm(rowsOf(stream, chunk), chunk, 'shift1', 'scale1'),
        normed.before,
        jobs.linear(toK, normed.x, h, count),
        jobs.storeHeads(keys, chunk, attn1.normK),
        jobs.linear(toV, normed.x, h, count),
        jobs.storeHeads(values, chunk, null),
      );
    }
    await this.#run(jobs.quantiseKeys());
    for (const chunk of chunks) {
      const { count } = chunk;
      const x = rowsOf(stream, chunk);
      await this.#run(
        jobs.modulatedNorm(x, chunk, 'shift1', 'scale1'),
        jobs.blockLinear(linears['attn1.to_q'], y, h, count),
        jobs.normHeads(h, count, attn1.normQ, chunk),
        jobs.selfAttention(chunk),
        jobs.blockLinear(linears['attn1.to_out.0'], y, x, count, jobs.gated(chunk, 'gate1')),
      );
    }
  }

  async crossFeedForward(
    index: number,
    block: BlockWeights,
    times: Times,
    text: TextContext,
  ): Promise<void> {
    const jobs = this.#jobs;
    const { linears, attn2, norm2 } = block;
    const { chunks, y, h, hidden, overflows } = this.#memory;
    const stream = this.#memory.stream(index);
    const { storage } = this.kernels;
    if (!text.memory) throw new TypeError('the text was prepared for another clip');
    const context = rowsOf(text.context, { start: 0 });
    const textRows = (tensor: DeviceTensor): Rows => ({ tensor, first: 0, storage });
    const [keys, values] = [jobs.sideBySide(text.memory.keys), jobs.sideBySide(text.memory.values)];
    const [scale, shift] = [norm2.weight, norm2.bias];
    jobs.makeRoom(block, text.rows);
    await this.#run(
      jobs.modulate(block, times),
      jobs.linear(linears['attn2.to_k'], context, textRows(text.memory.keys), text.rows),
      jobs.linear(linears['attn2.to_v'], context, textRows(text.memory.values), text.rows),
      jobs.normHeads(textRows(text.memory.keys), text.rows, attn2.normK),
    );
    for (const chunk of chunks) {
      const { count } = chunk;
      const x = rowsOf(stream, chunk);
      await this.#run(
        jobs.norm(x, count, { scale, shift, one: 0 }),
        jobs.blockLinear(linears['attn2.to_q'], y, h, count),
        jobs.normHeads(h, count, attn2.normQ),
        jobs.attention(keys, values, count, text.rows, { lastBias: text.lastBias }),
        jobs.blockLinear(linears['attn2.to_out.0'], y, x, count, { epilogue: 'added' }),
        jobs.modulatedNorm(x, chunk, 'shift2', 'scale2'),
        jobs.blockLinear(linears['ffn.net.0.proj'], y, hidden, count, {
          epilogue: 'gelu',
          overflows,
        }),
        jobs.blockLinear(linears['ffn.net.2'], hidden, x, count, jobs.gated(chunk, 'gate2')),
      );
    }
  }

  holdEmbedded(branch: number): void {
    this.#copy(this.#memory.stream(0), this.#memory.residual(branch));
  }

  async keepResidual(branch: number, index: number): Promise<void> {
    const [stream, residual] = [this.#memory.stream(index), this.#memory.residual(branch)];
    for (const chunk of this.#memory.chunks) {
      await this.#run(this.#jobs.difference(stream, residual, chunk));
    }
  }

  async head(source: HeadSource, times: Times, velocity: TokenRows): Promise<void> {
    const jobs = this.#jobs;
    const { projOut, scaleShiftTable } = this.weights;
    const { chunks, y } = this.#memory;
    await this.#run(
      jobs.sumOfTables(scaleShiftTable, times.noisy.temb, false),
      jobs.sumOfTables(scaleShiftTable, times.conditioning.temb, true),
    );
    for (const chunk of chunks) {
      const to = placeOf(velocity, chunk, this.conditioningTokens);
      if (!to) continue;
      const { rows, before } = jobs.chunkOf(source, chunk);
      await this.#run(
        before,
        jobs.modulatedNorm(rows, chunk, 'shift1', 'scale1'),
        jobs.linear(projOut, y, rowsOf(to.tensor, to), chunk.count),
      );
    }
  }

  async finish(): Promise<void> {
    const { overflows, overflowBits } = this.#memory;
    this.backend.copy(overflows, 0, overflowBits, 0, 1);
    const bits = await this.backend.read(overflowBits);
    const [count = 0] = new Uint32Array(bits.buffer);
    this.kernels.compute.clamped.count += count - this.#overflows;
    this.#overflows = count;
  }

  read(): Promise<Float32Array> {
    return this.backend.read(this.#memory.stream(0));
  }

  dispose(): void {
    this.#memory.dispose();
  }

  async #run(...jobs: readonly (Dispatch | readonly Dispatch[])[]): Promise<void> {
    if (!this.#listed) return this.kernels.compute.dispatch(jobs.flat());
    this.#listed.push(...jobs.flat());
  }

  #copy(from: Tensor, to: Tensor): void {
    this.backend.copy(from, 0, to, 0, elementCount(from.dims));
  }
}

import { type Backend, type DeviceTensor, elementCount, type Scope } from '../../../gpu';
import type { Dispatch, KernelFailure } from '../../../gpu/kernels';
import type { LatentSize } from '../../../pipeline/latents';
import type { TransformerConfig } from '../config';
import type { Clip, ClipOptions, HeadSource, TextContext, TextKeysValues, Times } from './clip';
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
    const jobs = this.#jobs;
    const { y, h, keys } = this.#memory;
    const [stream, modulation] = [this.#memory.stream(0), this.#memory.modulation(false)];
    const time = { temb: modulation, modulation };
    const times = { conditioning: time, noisy: time };
    const blocks = [{ keys: keys.tensor, values: keys.tensor }];
    const text = { rows: 1, lastBias: 0, blocks, dispose: () => undefined };
    const listed: Dispatch[] = [];
    this.#listed = listed;
    try {
      // The tensors are not looked at.
      await this.#run(jobs.linear(block.linears['attn2.to_k'], rowsOf(stream, { start: 0 }), y, 1));
      await this.#run(jobs.linear(block.linears['attn2.to_v'], rowsOf(stream, { start: 0 }), h, 1));
      await this.embed(stream);
      await this.selfAttention(0, block, times);
      await this.crossFeedForward(0, block, times, text, 0);
      await this.head({ stream: 0 }, times, stream, true);
    } finally {
      this.#listed = null;
    }
    const kernels = new Map(listed.map(({ kernel }) => [kernel.key, kernel]));
    return this.kernels.compute.compile([...kernels.values()]);
  }

  async textKeysValues(
    scope: Scope,
    context: Tensor,
    { linears, attn2 }: BlockWeights,
  ): Promise<TextKeysValues> {
    const jobs = this.#jobs;
    const { storage } = this.kernels;
    const [rows = 0] = context.dims;
    const x: Rows = { tensor: context, first: 0, storage: 'f32' };
    const make = (): Rows => {
      const dtype = storage === 'f32' ? 'float32' : 'float16';
      return { tensor: scope.tensor(dtype, context.dims, 'activations'), first: 0, storage };
    };
    const [keys, values] = [make(), make()];
    await this.#run(
      jobs.linear(linears['attn2.to_k'], x, keys, rows),
      jobs.normHeads(keys, rows, attn2.normK),
      jobs.linear(linears['attn2.to_v'], x, values, rows),
    );
    return { keys: keys.tensor, values: values.tensor };
  }

  async embed(tokens: Tensor): Promise<void> {
    const jobs = this.#jobs;
    const { patchEmbedding } = this.weights;
    const stream = this.#memory.stream(0);
    for (const chunk of this.#memory.chunks) {
      const [x, y] = [rowsOf(tokens, chunk), rowsOf(stream, chunk)];
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
      if (!this.#listed) this.#memory.countTiles(chunk, this.kernels.compute.tilePairs);
    }
  }

  async crossFeedForward(
    index: number,
    block: BlockWeights,
    times: Times,
    text: TextContext,
    blockIndex: number,
  ): Promise<void> {
    const jobs = this.#jobs;
    const { linears, attn2, norm2 } = block;
    const { chunks, y, h } = this.#memory;
    const { overflows } = this.#memory;
    const stream = this.#memory.stream(index);
    const context = text.blocks[blockIndex];
    if (!context) throw new TypeError(`the text was not prepared for block ${blockIndex}`);
    const [keys, values] = [jobs.sideBySide(context.keys), jobs.sideBySide(context.values)];
    const [scale, shift] = [norm2.weight, norm2.bias];
    await this.#run(jobs.modulate(block, times));
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
        jobs.blockLinear(linears['ffn.net.0.proj'], y, h, count, { epilogue: 'gelu', overflows }),
        jobs.blockLinear(linears['ffn.net.2'], h, x, count, jobs.gated(chunk, 'gate2')),
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

  async head(
    source: HeadSource,
    times: Times,
    velocity: Tensor,
    includeConditioning: boolean,
  ): Promise<void> {
    const jobs = this.#jobs;
    const { projOut, scaleShiftTable } = this.weights;
    const { chunks, y } = this.#memory;
    await this.#run(
      jobs.sumOfTables(scaleShiftTable, times.noisy.temb, false),
      jobs.sumOfTables(scaleShiftTable, times.conditioning.temb, true),
    );
    for (const chunk of chunks) {
      if (chunk.conditioning && !includeConditioning) continue;
      const { rows, before } = jobs.chunkOf(source, chunk);
      await this.#run(
        before,
        jobs.modulatedNorm(rows, chunk, 'shift1', 'scale1'),
        jobs.linear(projOut, y, rowsOf(velocity, chunk), chunk.count),
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

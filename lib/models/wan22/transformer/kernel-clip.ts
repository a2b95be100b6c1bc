import { type Backend, type DeviceTensor, elementCount, type Scope } from '../../../gpu';
import {
  type Dispatch,
  headRowsDispatch,
  type LinearShape,
  layerNormDispatch,
  type RowView,
  rowView,
  sumDispatch,
} from '../../../gpu/kernels';
import type { LatentSize } from '../../../pipeline/latents';
import { type TransformerConfig, transformerDim } from '../config';
import type { Linear } from '../layers';
import type { Chunk } from '../tokens';
import type { Clip, ClipOptions, HeadSource, TextContext, TextKeysValues, Times } from './clip';
import { KernelMemory } from './kernel-memory';
import {
  attentionJobs,
  type HeadRows,
  headRanges,
  headsFrom,
  interleaved,
  linearJobs,
  type Rows,
  type StepKernels,
  viewOf,
} from './kernel-steps';
import type { BlockWeights, TransformerWeights } from './weights';

type Tensor = DeviceTensor<'float32'>;

/** Rows of a block's modulation in the checkpoint's order; the head has the first two. */
const modulationRows = { shift1: 0, scale1: 1, gate1: 2, shift2: 3, scale2: 4, gate2: 5 } as const;
type ModulationRow = keyof typeof modulationRows;

/**
 * A clip whose steps are kernels of our own. Nothing is copied: the residual stream is f32 and is updated in
 * place, and a chunk's scratch is used again by the next one.
 */
export class KernelClip implements Clip {
  readonly #memory: KernelMemory;
  /** D */
  readonly #width: number;

  /** @throws KinoraError `OUT_OF_MEMORY`; then nothing stays on the device */
  constructor(
    readonly backend: Backend,
    readonly kernels: StepKernels,
    readonly config: TransformerConfig,
    readonly weights: TransformerWeights,
    readonly size: LatentSize,
    options: ClipOptions,
  ) {
    this.#width = transformerDim(config);
    this.#memory = new KernelMemory(backend, kernels, config, size, options);
  }

  get tokens(): number {
    return this.#memory.tokens;
  }

  get conditioningTokens(): number {
    return this.#memory.conditioningTokens;
  }

  async textKeysValues(
    scope: Scope,
    context: Tensor,
    { linears, attn2 }: BlockWeights,
  ): Promise<TextKeysValues> {
    const { storage } = this.kernels;
    const [rows = 0] = context.dims;
    const x: Rows = { tensor: context, first: 0, storage: 'f32' };
    const make = (): Rows => {
      const dtype = storage === 'f32' ? 'float32' : 'float16';
      return { tensor: scope.tensor(dtype, context.dims, 'activations'), first: 0, storage };
    };
    const [keys, values] = [make(), make()];
    await this.#run(
      this.#linear(linears['attn2.to_k'], x, keys, rows),
      this.#normHeads(keys, rows, attn2.normK),
      this.#linear(linears['attn2.to_v'], x, values, rows),
    );
    return { keys: keys.tensor, values: values.tensor };
  }

  async embed(tokens: Tensor): Promise<void> {
    const { patchEmbedding } = this.weights;
    const stream = this.#memory.stream(0);
    for (const chunk of this.#memory.chunks) {
      const [x, y] = [rowsOf(tokens, chunk), rowsOf(stream, chunk)];
      await this.#run(this.#linear(patchEmbedding, x, y, chunk.count));
    }
  }

  fork(): void {
    this.#copy(this.#memory.stream(0), this.#memory.stream(1));
  }

  async selfAttention(index: number, block: BlockWeights, times: Times): Promise<void> {
    const { linears, attn1 } = block;
    const { chunks, y, h, keys, values, tokens } = this.#memory;
    const stream = this.#memory.stream(index);
    await this.#run(this.#modulate(block, times));
    for (const chunk of chunks) {
      const { count } = chunk;
      await this.#run(
        this.#modulatedNorm(rowsOf(stream, chunk), chunk, 'shift1', 'scale1'),
        this.#linear(linears['attn1.to_k'], y, h, count),
        this.#storeHeads(keys, chunk, attn1.normK),
        this.#linear(linears['attn1.to_v'], y, h, count),
        this.#storeHeads(values, chunk, null),
      );
    }
    for (const chunk of chunks) {
      const { count } = chunk;
      const x = rowsOf(stream, chunk);
      await this.#run(
        this.#modulatedNorm(x, chunk, 'shift1', 'scale1'),
        this.#linear(linears['attn1.to_q'], y, h, count),
        this.#normHeads(h, count, attn1.normQ, chunk),
        this.#attention(keys, values, count, tokens),
        this.#linear(linears['attn1.to_out.0'], y, x, count, this.#gated(chunk, 'gate1')),
      );
    }
  }

  async crossFeedForward(
    index: number,
    block: BlockWeights,
    times: Times,
    text: TextContext,
    blockIndex: number,
  ): Promise<void> {
    const { linears, attn2, norm2 } = block;
    const { chunks, y, h } = this.#memory;
    const stream = this.#memory.stream(index);
    const context = text.blocks[blockIndex];
    if (!context) throw new TypeError(`the text was not prepared for block ${blockIndex}`);
    const [keys, values] = [this.#sideBySide(context.keys), this.#sideBySide(context.values)];
    const [scale, shift] = [norm2.weight, norm2.bias];
    await this.#run(this.#modulate(block, times));
    for (const chunk of chunks) {
      const { count } = chunk;
      const x = rowsOf(stream, chunk);
      await this.#run(
        this.#norm(x, count, { scale, shift, one: 0 }),
        this.#linear(linears['attn2.to_q'], y, h, count),
        this.#normHeads(h, count, attn2.normQ),
        this.#attention(keys, values, count, text.rows, text.lastBias),
        this.#linear(linears['attn2.to_out.0'], y, x, count, { epilogue: 'added' }),
        this.#modulatedNorm(x, chunk, 'shift2', 'scale2'),
        this.#linear(linears['ffn.net.0.proj'], y, h, count, { epilogue: 'gelu' }),
        this.#linear(linears['ffn.net.2'], h, x, count, this.#gated(chunk, 'gate2')),
      );
    }
  }

  holdEmbedded(branch: number): void {
    this.#copy(this.#memory.stream(0), this.#memory.residual(branch));
  }

  async keepResidual(branch: number, index: number): Promise<void> {
    const [stream, residual] = [this.#memory.stream(index), this.#memory.residual(branch)];
    for (const chunk of this.#memory.chunks) {
      const a = this.#view(rowsOf(stream, chunk), chunk.count);
      const b = this.#view(rowsOf(residual, chunk), chunk.count);
      await this.#run(sumDispatch(this.#width, { a, b, rows: chunk.count, factor: -1 }));
    }
  }

  async head(
    source: HeadSource,
    times: Times,
    velocity: Tensor,
    includeConditioning: boolean,
  ): Promise<void> {
    const { projOut, scaleShiftTable } = this.weights;
    const { chunks, y } = this.#memory;
    await this.#run(
      this.#sumOfTables(scaleShiftTable, times.noisy.temb, false),
      this.#sumOfTables(scaleShiftTable, times.conditioning.temb, true),
    );
    for (const chunk of chunks) {
      if (chunk.conditioning && !includeConditioning) continue;
      const { rows, jobs } = this.#chunkOf(source, chunk);
      await this.#run(
        jobs,
        this.#modulatedNorm(rows, chunk, 'shift1', 'scale1'),
        this.#linear(projOut, y, rowsOf(velocity, chunk), chunk.count),
      );
    }
  }

  read(): Promise<Float32Array> {
    return this.backend.read(this.#memory.stream(0));
  }

  dispose(): void {
    this.#memory.dispose();
  }

  #run(...jobs: readonly (Dispatch | readonly Dispatch[])[]): Promise<void> {
    return this.kernels.compute.dispatch(jobs.flat());
  }

  #copy(from: Tensor, to: Tensor): void {
    this.backend.copy(from, 0, to, 0, elementCount(from.dims));
  }

  /** The block's table and the time, for both kinds of tokens. */
  #modulate({ scaleShiftTable }: BlockWeights, { noisy, conditioning }: Times): Dispatch[] {
    return [
      this.#sumOfTables(scaleShiftTable, noisy.modulation, false),
      this.#sumOfTables(scaleShiftTable, conditioning.modulation, true),
    ];
  }

  /** `table` plus a time embedding, row by row or one row for all. */
  #sumOfTables(table: Tensor, time: Tensor, conditioning: boolean): Dispatch {
    const [rows = 0] = table.dims;
    const whole = (tensor: Tensor) => this.#view({ tensor, first: 0, storage: 'f32' }, rows);
    const [a, b] = [whole(table), rowView(time, 0, time.dims[0] ?? 0, 4 * this.#width)];
    const y = whole(this.#memory.modulation(conditioning));
    return sumDispatch(this.#width, { a, b, y, rows, factor: 1, repeated: time.dims[0] === 1 });
  }

  /** A row that modulates the tokens of a chunk. */
  #modulation({ conditioning }: Chunk, row: ModulationRow): RowView {
    const tensor = this.#memory.modulation(conditioning);
    return this.#view({ tensor, first: modulationRows[row], storage: 'f32' }, 1);
  }

  #gated(chunk: Chunk, row: ModulationRow) {
    return { epilogue: 'gated', gate: this.#modulation(chunk, row) } as const;
  }

  /** Rows of D into `y`. */
  #norm(
    rows: Rows,
    count: number,
    factors: Pick<Parameters<typeof layerNormDispatch>[1], 'scale' | 'shift' | 'one'>,
  ): Dispatch {
    const { y } = this.#memory;
    const shape = { width: this.#width, epsilon: this.config.eps, output: y.storage };
    const [from, to] = [this.#view(rows, count), this.#view(y, count)];
    return layerNormDispatch(shape, { x: from, y: to, rows: count, ...factors });
  }

  #modulatedNorm(rows: Rows, chunk: Chunk, shift: ModulationRow, scale: ModulationRow): Dispatch {
    // A row of D starts at an aligned offset.
    return this.#norm(rows, chunk.count, {
      scale: this.#modulation(chunk, scale).operand,
      shift: this.#modulation(chunk, shift).operand,
      one: 1,
    });
  }

  #linear(
    layer: Linear,
    x: Rows,
    y: Rows,
    rows: number,
    after: { readonly epilogue?: LinearShape['epilogue']; readonly gate?: RowView } = {},
  ): Dispatch[] {
    const branch = (values: number) => this.#memory.branch(values);
    return linearJobs(this.kernels.linear, layer, { x, y, rows, branch, ...after });
  }

  /** RMS norm of rows where they are, and rotary embedding for tokens of the clip. */
  #normHeads(rows: Rows, count: number, weight: Tensor, chunk?: Chunk): Dispatch {
    const norm = { epsilon: this.config.eps };
    const shape = { ...this.#headShape(rows), output: null, norm, rotary: chunk !== undefined };
    const angles = chunk && { angles: this.#angles(chunk) };
    return headRowsDispatch(shape, { x: this.#view(rows, count), rows: count, weight, ...angles });
  }

  /** A chunk's rows in `h` go to the clip's keys, normed and rotated, or to its values, as they are. */
  #storeHeads(to: HeadRows, chunk: Chunk, weight: Tensor | null): Dispatch[] {
    const { h } = this.#memory;
    const shape = {
      ...this.#headShape(h),
      output: to.storage,
      norm: weight && { epsilon: this.config.eps },
      rotary: weight !== null,
    };
    const { headStride, rowStride } = to;
    return this.#ranges(to).map((heads) =>
      headRowsDispatch(shape, {
        x: this.#view(h, chunk.count),
        rows: chunk.count,
        ...(weight && { weight, angles: this.#angles(chunk) }),
        to: {
          y: headsFrom(to, heads, this.tokens).operand,
          firstRow: chunk.start,
          ...{ headStride, rowStride, heads },
        },
      }),
    );
  }

  /** Queries in `h` attend; what they get goes to `y`. */
  #attention(k: HeadRows, v: HeadRows, rows: number, keys: number, lastBias?: number): Dispatch[] {
    const { h, y } = this.#memory;
    const [q, out] = [this.#sideBySide(h.tensor), this.#sideBySide(y.tensor)];
    const headSize = this.config.attention_head_dim;
    const bias = lastBias === undefined ? {} : { lastBias };
    const ranges = this.#ranges(k);
    return attentionJobs(this.kernels, { q, k, v, out, headSize, ranges, rows, keys, ...bias });
  }

  #headShape({ storage }: Rows) {
    return { width: this.#width, headSize: this.config.attention_head_dim, input: storage };
  }

  #angles({ start }: Chunk) {
    return { cos: this.#memory.cos, sin: this.#memory.sin, first: start };
  }

  #ranges(of: HeadRows) {
    const { num_attention_heads: heads, attention_head_dim: headSize } = this.config;
    return headRanges(this.kernels.compute, heads, headSize, of);
  }

  #sideBySide(tensor: DeviceTensor): HeadRows {
    const { storage } = this.kernels;
    return interleaved(tensor, storage, this.#width, this.config.attention_head_dim);
  }

  #view(rows: Rows, count: number): RowView {
    return viewOf(rows, count, this.#width);
  }

  /** A chunk as the blocks left it, or would have. */
  #chunkOf(source: HeadSource, chunk: Chunk): { rows: Rows; jobs: Dispatch[] } {
    if ('stream' in source) {
      return { rows: rowsOf(this.#memory.stream(source.stream), chunk), jobs: [] };
    }
    const { tensor } = this.#memory.h;
    const rows: Rows = { tensor, first: 0, storage: 'f32' };
    const residual = this.#memory.residual(source.reused);
    const sum = sumDispatch(this.#width, {
      a: this.#view(rowsOf(this.#memory.stream(0), chunk), chunk.count),
      b: this.#view(rowsOf(residual, chunk), chunk.count),
      y: this.#view(rows, chunk.count),
      rows: chunk.count,
      factor: 1,
    });
    return { rows, jobs: [sum] };
  }
}

/** A chunk's rows of a tensor of all tokens in f32. */
function rowsOf(tensor: Tensor, { start }: Chunk): Rows {
  return { tensor, first: start, storage: 'f32' };
}

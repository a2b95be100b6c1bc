import type { DeviceTensor } from '../../../gpu';
import {
  type Dispatch,
  fastAttentionDispatch,
  headRowsDispatch,
  layerNormDispatch,
  quantiseDispatch,
  quantiseRows,
  type RowView,
  rowView,
  sumDispatch,
} from '../../../gpu/kernels';
import { type TransformerConfig, transformerDim } from '../config';
import type { Linear } from '../layers';
import type { Chunk } from '../tokens';
import type { HeadSource, Times } from './clip';
import type { KernelMemory } from './kernel-memory';
import {
  type AttentionStep,
  attentionJobs,
  type HeadRange,
  type HeadRows,
  headRanges,
  headsFrom,
  interleaved,
  type LinearStep,
  linearJobs,
  type Rows,
  type StepKernels,
  viewOf,
  weightOf,
} from './kernel-steps';
import type { BlockWeights } from './weights';

type Tensor = DeviceTensor<'float32'>;

/** Rows of a block's modulation in the checkpoint's order; the head has the first two. */
const modulationRows = { shift1: 0, scale1: 1, gate1: 2, shift2: 3, scale2: 4, gate2: 5 } as const;
type ModulationRow = keyof typeof modulationRows;

/** The operations that the steps of a clip are made of, on its memory. */
export class KernelJobs {
  /** D */
  readonly #width: number;

  constructor(
    readonly kernels: StepKernels,
    readonly config: TransformerConfig,
    readonly memory: KernelMemory,
  ) {
    this.#width = transformerDim(config);
  }

  /** The block's table and the time, for both kinds of tokens. */
  modulate({ scaleShiftTable }: BlockWeights, { noisy, conditioning }: Times): Dispatch[] {
    return [
      this.sumOfTables(scaleShiftTable, noisy.modulation, false),
      this.sumOfTables(scaleShiftTable, conditioning.modulation, true),
    ];
  }

  /** `table` plus a time embedding, row by row or one row for all. */
  sumOfTables(table: Tensor, time: Tensor, conditioning: boolean): Dispatch {
    const [rows = 0] = table.dims;
    const whole = (tensor: Tensor) => this.#view({ tensor, first: 0, storage: 'f32' }, rows);
    const [a, b] = [whole(table), rowView(time, 0, time.dims[0] ?? 0, 4 * this.#width)];
    const y = whole(this.memory.modulation(conditioning));
    return sumDispatch(this.#width, { a, b, y, rows, factor: 1, repeated: time.dims[0] === 1 });
  }

  /** A row that modulates the tokens of a chunk. */
  #modulation({ conditioning }: Chunk, row: ModulationRow): RowView {
    const tensor = this.memory.modulation(conditioning);
    return this.#view({ tensor, first: modulationRows[row], storage: 'f32' }, 1);
  }

  gated(chunk: Chunk, row: ModulationRow) {
    return { epilogue: 'gated', gate: this.#modulation(chunk, row) } as const;
  }

  /** Rows of D into `y`. */
  norm(
    rows: Rows,
    count: number,
    factors: Pick<Parameters<typeof layerNormDispatch>[1], 'scale' | 'shift' | 'one'>,
  ): Dispatch {
    const { y } = this.memory;
    const shape = { width: this.#width, epsilon: this.config.eps, output: y.storage };
    const [from, to] = [this.#view(rows, count), this.#view(y, count)];
    return layerNormDispatch(shape, { x: from, y: to, rows: count, ...factors });
  }

  modulatedNorm(rows: Rows, chunk: Chunk, shift: ModulationRow, scale: ModulationRow): Dispatch {
    // A row of D starts at an aligned offset.
    return this.norm(rows, chunk.count, {
      scale: this.#modulation(chunk, scale).operand,
      shift: this.#modulation(chunk, shift).operand,
      one: 1,
    });
  }

  /** Rows as layers of a block read them: in the mode `fast` in 8 bits, which `before` makes. */
  quantise(
    x: Rows,
    count: number,
    ...layers: readonly [Linear, ...Linear[]]
  ): { readonly x: Rows; readonly before: readonly Dispatch[] } {
    const { quantised } = this.memory;
    const inBlocks = layers.some((layer) => weightOf(layer) !== 'f32');
    if (!this.kernels.fastLinear || !quantised || !inBlocks) return { x, before: [] };
    const { inFeatures: k } = layers[0].spec;
    const { values, scales } = k > this.#width ? quantised.hidden : quantised.rows;
    const bytes = { x: rowView(values, 0, count, k), xScales: rowView(scales, 0, count, k / 8) };
    const source = viewOf(x, count, k);
    const before = [quantiseDispatch(k, x.storage, { rows: count, source, ...bytes })];
    return { x: { ...x, quantised: bytes }, before };
  }

  /** A layer of a block that alone reads its rows. */
  blockLinear(
    layer: Linear,
    rows: Rows,
    y: Rows,
    count: number,
    after: Parameters<KernelJobs['linear']>[4] = {},
  ): Dispatch[] {
    const { x, before } = this.quantise(rows, count, layer);
    return [...before, ...this.linear(layer, x, y, count, after)];
  }

  /**
   * Makes room for what a LoRA does beside the layers of a block: it may not grow, and move, while a dispatch waits
   * to be submitted.
   *
   * @param text rows of the text that the block sees
   */
  makeRoom({ linears }: BlockWeights, text = 0): void {
    const ranks = Object.values(linears).map(({ tensors }) => tensors.down?.dims[0] ?? 0);
    const rank = Math.max(...ranks);
    const [rows = 0] = this.memory.y.tensor.dims;
    if (rank > 0) this.memory.branch(rank * Math.max(rows, text));
  }

  linear(
    layer: Linear,
    x: Rows,
    y: Rows,
    rows: number,
    after: Pick<LinearStep, 'epilogue' | 'gate' | 'overflows'> = {},
  ): Dispatch[] {
    const branch = (values: number) => this.memory.branch(values);
    return linearJobs(this.kernels, layer, { x, y, rows, branch, ...after });
  }

  /** RMS norm of rows where they are, and rotary embedding for tokens of the clip. */
  normHeads(rows: Rows, count: number, weight: Tensor, chunk?: Chunk): Dispatch {
    const norm = { epsilon: this.config.eps };
    const shape = { ...this.#headShape(rows), output: null, norm, rotary: chunk !== undefined };
    const angles = chunk && { angles: this.#angles(chunk) };
    return headRowsDispatch(shape, { x: this.#view(rows, count), rows: count, weight, ...angles });
  }

  /** A chunk's rows in `h` go to the clip's keys, normed and rotated, or to its values, as they are. */
  storeHeads(to: HeadRows, chunk: Chunk, weight: Tensor | null): Dispatch[] {
    const { h } = this.memory;
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
          y: headsFrom(to, heads, this.memory.tokens).operand,
          firstRow: chunk.start,
          ...{ headStride, rowStride, heads },
        },
      }),
    );
  }

  /** In the mode `fast`, stores the clip's keys in 8 bits. */
  quantiseKeys(): Dispatch[] {
    const { quantised, keys, tokens: rows } = this.memory;
    return (quantised?.keys ?? []).flatMap(({ range, of }) =>
      quantiseRows({
        ...this.#headsOf(keys, range, rows),
        y: of,
        ...(quantised?.mean && { mean: quantised.mean }),
      }),
    );
  }

  #headsOf(of: HeadRows, range: HeadRange, rows: number) {
    const { attention_head_dim: headSize } = this.config;
    const x = headsFrom(of, range, rows);
    return { x, storage: of.storage, headSize, heads: range.count, rows };
  }

  /** A chunk's queries in `h` attend to the clip's keys. */
  selfAttention(chunk: Chunk): Dispatch[] {
    const { count: rows } = chunk;
    const { quantised, keys, values, h, y, tokens } = this.memory;
    const { fastAttention } = this.kernels;
    if (!fastAttention || !quantised) return this.attention(keys, values, rows, tokens);
    const [q, out] = [this.sideBySide(h.tensor), this.sideBySide(y.tensor)];
    const { attention_head_dim: headSize } = this.config;
    const storages = { q: q.storage, kv: values.storage, out: out.storage };
    const shape = { headSize, ...storages, bias: 'none' } as const;
    return quantised.keys.flatMap(({ range, of }) => [
      // The next range's queries take the place of these.
      ...quantiseRows({ ...this.#headsOf(q, range, rows), y: quantised.rows }),
      fastAttentionDispatch(fastAttention, shape, {
        q: quantised.rows,
        k: of,
        v: headsFrom(values, range, tokens),
        out: headsFrom(out, range, rows),
        heads: range.count,
        ...{ rows, keys: tokens, scale: 1 / Math.sqrt(headSize) },
      }),
    ]);
  }

  /** Queries in `h` attend; what they get goes to `y`. */
  attention(
    k: HeadRows,
    v: HeadRows,
    rows: number,
    keys: number,
    more: Pick<AttentionStep, 'lastBias'> = {},
  ): Dispatch[] {
    const { h, y } = this.memory;
    const [q, out] = [this.sideBySide(h.tensor), this.sideBySide(y.tensor)];
    const headSize = this.config.attention_head_dim;
    const ranges = this.#ranges(k);
    return attentionJobs(this.kernels, { q, k, v, out, headSize, ranges, rows, keys, ...more });
  }

  #headShape({ storage }: Rows) {
    return { width: this.#width, headSize: this.config.attention_head_dim, input: storage };
  }

  #angles({ start }: Chunk) {
    return { cos: this.memory.cos, sin: this.memory.sin, first: start };
  }

  #ranges(of: HeadRows) {
    const { num_attention_heads: heads, attention_head_dim: headSize } = this.config;
    return headRanges(this.kernels.compute, heads, headSize, of);
  }

  sideBySide(tensor: DeviceTensor): HeadRows {
    const { storage } = this.kernels;
    return interleaved(tensor, storage, this.#width, this.config.attention_head_dim);
  }

  #view(rows: Rows, count: number): RowView {
    return viewOf(rows, count, this.#width);
  }

  /** A chunk as the blocks left it, or would have. */
  chunkOf(source: HeadSource, chunk: Chunk): { rows: Rows; before: Dispatch[] } {
    if ('stream' in source) {
      return { rows: rowsOf(this.memory.stream(source.stream), chunk), before: [] };
    }
    const { tensor } = this.memory.hidden;
    const rows: Rows = { tensor, first: 0, storage: 'f32' };
    const residual = this.memory.residual(source.reused);
    const sum = sumDispatch(this.#width, {
      a: this.#view(rowsOf(this.memory.stream(0), chunk), chunk.count),
      b: this.#view(rowsOf(residual, chunk), chunk.count),
      y: this.#view(rows, chunk.count),
      rows: chunk.count,
      factor: 1,
    });
    return { rows, before: [sum] };
  }

  /** `b = a − b`, for a chunk of both. */
  difference(a: Tensor, b: Tensor, chunk: Chunk): Dispatch {
    const view = (tensor: Tensor) => this.#view(rowsOf(tensor, chunk), chunk.count);
    return sumDispatch(this.#width, { a: view(a), b: view(b), rows: chunk.count, factor: -1 });
  }
}

/** A chunk's rows of a tensor of all tokens in f32. */
export function rowsOf(tensor: Tensor, { start }: Pick<Chunk, 'start'>): Rows {
  return { tensor, first: start, storage: 'f32' };
}

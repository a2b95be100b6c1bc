import type { Backend, DeviceTensor } from '../../../gpu';
import {
  type AttentionVariant,
  attentionDispatch,
  type Compute,
  type Dispatch,
  fastLinearDispatch,
  type HeadView,
  hasAttention,
  type LinearOperands,
  type LinearShape,
  type LinearVariant,
  linearDispatch,
  type QuantisedRows,
  type RowView,
  rowView,
  type Storage,
  storageBytes,
} from '../../../gpu/kernels';
import { type TransformerConfig, transformerDim } from '../config';
import type { Linear } from '../layers';

/** What the steps of a clip are computed with. */
export interface StepKernels {
  readonly compute: Compute;
  readonly linear: LinearVariant;
  readonly attention: AttentionVariant;
  /** In the mode `fast`, for the layers and the self-attention of blocks. */
  readonly fastLinear: LinearVariant | null;
  readonly fastAttention: AttentionVariant | null;
  /** How activations lie between two steps; the residual stream is f32. */
  readonly storage: Storage;
}

/** The kernels for a transformer; null where the runtime's graphs have to compute it. */
export function stepKernels(backend: Backend, config: TransformerConfig): StepKernels | null {
  const { compute, kernels } = backend;
  const choice = kernels?.choice;
  if (!compute || !choice?.linear || !choice.attention) return null;
  const { linear, attention, fastLinear = null, fastAttention = null, storage = 'f16' } = choice;
  // Rows start at aligned offsets, and are whole vectors.
  const fits =
    transformerDim(config) % 64 === 0 &&
    hasAttention(config.attention_head_dim) &&
    config.ffn_dim % 4 === 0 &&
    config.in_channels % 4 === 0 &&
    config.out_channels % 4 === 0;
  return fits ? { compute, linear, attention, fastLinear, fastAttention, storage } : null;
}

/** Rows of a tensor, and how they are stored. */
export interface Rows {
  readonly tensor: DeviceTensor;
  readonly first: number;
  readonly storage: Storage;
  /** The same rows in 8 bits, for fast linear layers. */
  readonly quantised?: QuantisedRows;
}

/** A view of rows of `width` elements. */
export function viewOf({ tensor, first, storage }: Rows, count: number, width: number): RowView {
  return rowView(tensor, first, count, width * storageBytes(storage));
}

/** What a linear layer reads and writes. */
export interface LinearStep {
  readonly x: Rows;
  readonly y: Rows;
  readonly rows: number;
  readonly epilogue?: LinearShape['epilogue'];
  /** With the epilogue `gated`. */
  readonly gate?: RowView;
  /** Counts results that f16 does not hold; they are not counted without it. */
  readonly overflows?: DeviceTensor;
  /** At least [rows, rank], where a LoRA is. */
  readonly branch: (values: number) => DeviceTensor;
}

/** How a layer's weight lies. */
export function weightOf({ spec }: Linear): LinearShape['weight'] {
  return ({ f32: 'f32', int8: 'q8', int4: 'q4' } as const)[spec.precision];
}

/** A linear layer: one dispatch, and one before it for a LoRA's `x·downᵀ`. It is fast where x is there in 8 bits. */
export function linearJobs(
  { linear, fastLinear }: Pick<StepKernels, 'linear' | 'fastLinear'>,
  layer: Linear,
  step: LinearStep,
): Dispatch[] {
  const { x, y, rows, epilogue = 'none', gate } = step;
  const overflows = y.storage === 'f16' ? step.overflows : undefined;
  const { inFeatures: k, outFeatures: n, bias } = layer.spec;
  const { down, up, ...tensors } = layer.tensors;
  const rank = down?.dims[0] ?? 0;
  const source = viewOf(x, rows, k);
  const common = { k, input: x.storage };
  const shape: LinearShape = {
    ...common,
    n,
    weight: weightOf(layer),
    output: y.storage,
    bias,
    rank,
    epilogue,
    ...(overflows && { counted: true }),
  };
  const operands = {
    rows,
    x: source,
    y: viewOf(y, rows, n),
    ...tensors,
    ...(gate && { gate }),
    ...(overflows && { overflows }),
  };
  const product = (more: Partial<LinearOperands> = {}) => {
    const { weight } = shape;
    return fastLinear && x.quantised && weight !== 'f32'
      ? fastLinearDispatch(
          fastLinear,
          { ...shape, weight },
          { ...operands, ...more, ...x.quantised },
        )
      : linearDispatch(linear, shape, { ...operands, ...more });
  };
  if (!down || !up) return [product()];
  const t: Rows = { tensor: step.branch(rows * rank), first: 0, storage: 'f32' };
  const branch = { operand: viewOf(t, rows, rank).operand, firstRow: 0 };
  return [
    linearDispatch(
      linear,
      {
        ...common,
        n: rank,
        weight: 'f32',
        output: 'f32',
        bias: false,
        rank: 0,
        epilogue: 'none',
      },
      { rows, x: source, y: branch, weight: down },
    ),
    product({ t: branch, up }),
  ];
}

/** Rows of all heads in a buffer. Element (head, row, c) lies at `head·headStride + row·rowStride + c`. */
export interface HeadRows {
  readonly tensor: DeviceTensor;
  readonly storage: Storage;
  readonly headStride: number;
  readonly rowStride: number;
}

/** Heads side by side in rows of `width` elements. */
export function interleaved(
  tensor: DeviceTensor,
  storage: Storage,
  width: number,
  headSize: number,
) {
  return { tensor, storage, headStride: headSize, rowStride: width };
}

/** Some of the heads. */
export interface HeadRange {
  readonly first: number;
  readonly count: number;
}

/**
 * The ranges of heads that one binding sees at a time: all of them where it can be, else as many as fit and
 * start at an aligned offset in every operand.
 */
export function headRanges(
  compute: Compute,
  heads: number,
  headSize: number,
  { headStride, storage }: HeadRows,
): HeadRange[] {
  const bytes = storageBytes(storage);
  const aligned = Math.max(1, 256 / (headSize * bytes));
  const fitting = Math.floor(compute.limits.bindingBytes / (headStride * bytes));
  const most = fitting >= heads ? heads : Math.max(aligned, fitting - (fitting % aligned));
  const ranges: HeadRange[] = [];
  for (let first = 0; first < heads; first += most) {
    ranges.push({ first, count: Math.min(most, heads - first) });
  }
  return ranges;
}

/** The heads of a range as they lie in a buffer, from the range's first on. */
export function headsFrom(of: HeadRows, { first, count }: HeadRange, rows: number): HeadView {
  const bytes = storageBytes(of.storage);
  const { tensor, headStride, rowStride } = of;
  const elements = Math.max(count * headStride, rows * rowStride);
  const start = first * headStride * bytes;
  const byteSize = Math.min(elements * bytes, tensor.bytes - start);
  return { operand: { tensor, byteOffset: start, byteSize }, firstRow: 0, headStride, rowStride };
}

/** One attention of `rows` queries over `keys` keys. */
export interface AttentionStep {
  readonly q: HeadRows;
  readonly k: HeadRows;
  readonly v: HeadRows;
  readonly out: HeadRows;
  readonly headSize: number;
  /** Each is a dispatch. */
  readonly ranges: readonly HeadRange[];
  readonly rows: number;
  readonly keys: number;
  /** Added to the logit of the last key. */
  readonly lastBias?: number;
}

/** `softmax(q·kᵀ/√headSize)·v`. */
export function attentionJobs(
  { attention }: StepKernels,
  { q, k, v, out, headSize, ranges, rows, keys, lastBias }: AttentionStep,
): Dispatch[] {
  const bias = lastBias === undefined ? 'none' : 'last';
  const storages = { q: q.storage, kv: k.storage, out: out.storage };
  const shape = { headSize, ...storages, bias } as const;
  return ranges.map((range) =>
    attentionDispatch(attention, shape, {
      q: headsFrom(q, range, rows),
      k: headsFrom(k, range, keys),
      v: headsFrom(v, range, keys),
      out: headsFrom(out, range, rows),
      heads: range.count,
      rows,
      keys,
      scale: 1 / Math.sqrt(headSize),
      ...(lastBias !== undefined && { lastBias }),
    }),
  );
}

import { memoised } from '../../graph';
import type { DeviceTensor } from '../tensor';
import { exactLogits } from './attention-exact';
import { geometryOf, largestHead } from './attention-tile';
import { attentionText } from './attention-wgsl';
import type { AttentionShape, AttentionVariant } from './choice';
import { type Compute, type Dispatch, fits, type Operand, type RowView } from './compute';
import type { Kernel } from './kernel';
import { registersOf } from './registers';

/** Rows of heads. Element (head, row, c) lies at `head·headStride + (firstRow + row)·rowStride + c`. */
export interface HeadView extends RowView {
  /** In elements, multiples of 8. */
  readonly headStride: number;
  readonly rowStride: number;
}

/** One run of attention: `out = softmax(q·kᵀ·scale + bias)·v`. */
export interface AttentionRun {
  readonly q: HeadView;
  readonly k: HeadView;
  readonly v: HeadView;
  readonly out: HeadView;
  readonly heads: number;
  /** Rows of q and out. */
  readonly rows: number;
  /** Rows of k and v, at least 1. */
  readonly keys: number;
  readonly scale: number;
  /** For a bias `last`. */
  readonly lastBias?: number;
  /** For a bias `full`: [rows, keys] per head, `headStride` elements apart; 0 when heads share one. */
  readonly bias?: { readonly tensor: DeviceTensor | Operand; readonly headStride: number };
}

type Tile = readonly [queries: number, keys: number];

const tiles: readonly Tile[] = [
  [64, 64],
  [128, 64],
  [32, 64],
  [128, 128],
  [64, 128],
];

/** With tiles in f16, which help where it costs nothing to widen them: such GPUs have few registers for a thread. */
const halfTiles: readonly Tile[] = [
  [32, 64],
  [64, 64],
];

/** Geometries that a device can run: classes of registers, and variants within a class, the best guess first. */
export function attentionVariants(
  compute: Pick<Compute, 'features' | 'limits' | 'subgroupSizes'>,
): AttentionVariant[] {
  const loads = registersOf(compute) ? ({ ahead: false } as const) : {};
  const half = compute.features.has('shader-f16');
  const of = (shared: 'f32' | 'f16', all: readonly Tile[]) =>
    all.map(([queries, keys]): AttentionVariant => ({ queries, keys, shared, ...loads }));
  return [...of('f32', tiles), ...of('f16', half ? halfTiles : [])].filter((variant) =>
    fits(compute, attentionKernel(variant, widest)),
  );
}

/** Logits, and results of the widest head, that a thread has in registers. */
export function attentionResults(variant: AttentionVariant): number {
  const { rows, keys, columns } = geometryOf(variant, largestHead);
  return rows * (keys + 4 * columns);
}

/** The shape that takes the most workgroup memory. */
export const widest: AttentionShape = {
  headSize: largestHead,
  q: 'f16',
  kv: 'f16',
  out: 'f16',
  bias: 'none',
};

/** Whether there is a kernel for heads of this size. */
export function hasAttention(headSize: number): boolean {
  return headSize >= 8 && headSize <= largestHead && headSize % 8 === 0;
}

/**
 * The kernel of a variant for a shape: two chained products per tile of keys with an online softmax (Dao,
 * [arXiv:2307.08691](https://arxiv.org/abs/2307.08691)). Equal tiles of keys give equal bits, whatever the tiles of
 * queries.
 *
 * @throws RangeError for a head size without a kernel
 */
export const attentionKernel = memoised(
  (variant: AttentionVariant, shape: AttentionShape): Kernel => {
    if (!hasAttention(shape.headSize)) {
      throw new RangeError(`there is no attention for heads of ${shape.headSize}`);
    }
    return attentionText(variant, shape, exactLogits(variant, shape));
  },
);

/**
 * A run of attention as a dispatch. The head is the slowest index of the grid, so that the keys of one head stay
 * in the GPU's cache.
 *
 * @throws TypeError for strides that are no multiples of 8
 */
export function attentionDispatch(
  variant: AttentionVariant,
  shape: AttentionShape,
  run: AttentionRun,
): Dispatch {
  return dispatchOf(attentionKernel(variant, shape), variant, shape, run);
}

/** A run of a kernel that reads q, k and v as they are. */
export function dispatchOf(
  kernel: Kernel,
  variant: Pick<AttentionVariant, 'queries'>,
  shape: AttentionShape,
  run: AttentionRun,
): Dispatch {
  const { q, k, v, ...rest } = run;
  const common = attentionOperands(variant, shape, rest);
  return {
    ...common,
    kernel,
    operands: { ...common.operands, q: q.operand, k: k.operand, v: v.operand },
    uniforms: { ...common.uniforms, ...placeUniforms({ q, k, v }) },
  };
}

/** What a dispatch has whatever the logits are made of. */
export function attentionOperands(
  variant: Pick<AttentionVariant, 'queries'>,
  shape: AttentionShape,
  { out, heads, rows, keys, scale, lastBias, bias }: Omit<AttentionRun, 'q' | 'k' | 'v'>,
): Omit<Dispatch, 'kernel'> {
  return {
    operands: {
      out: out.operand,
      ...(bias && { bias: bias.tensor }),
    },
    uniforms: {
      rows,
      keys,
      scale: scale * Math.LOG2E,
      ...placeUniforms({ out }),
      ...(lastBias !== undefined && { lastBias: lastBias * Math.LOG2E }),
      ...(bias && { biasHead: bias.headStride }),
    },
    groups: heads * Math.ceil(rows / variant.queries),
    flops: 4 * heads * rows * keys * shape.headSize,
  };
}

function placeUniforms(views: Readonly<Record<string, HeadView>>): Record<string, number> {
  const uniforms: Record<string, number> = {};
  for (const [name, { headStride, rowStride, firstRow }] of Object.entries(views)) {
    if (headStride % 8 !== 0 || rowStride % 8 !== 0) {
      throw new TypeError(`attention: the strides of ${name} are no multiples of 8`);
    }
    uniforms[`${name}Head`] = headStride / 8;
    uniforms[`${name}Row`] = rowStride / 8;
    uniforms[`${name}First`] = firstRow;
  }
  return uniforms;
}

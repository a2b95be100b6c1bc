import { memoised } from '../../graph';
import type { DeviceTensor } from '../tensor';
import type { LinearShape, LinearVariant } from './choice';
import {
  type Compute,
  type Dispatch,
  fits,
  type Operand,
  type RowView,
  rowOperands,
} from './compute';
import { defineKernel, type Kernel } from './kernel';
import {
  accumulatorLines,
  epilogueBindings,
  epilogueDeclarations,
  epilogueLines,
  epilogueUniforms,
  tileLines,
} from './linear-epilogue';
import { type Fill, inputFill, stepLoop, weightFill } from './linear-fill';
import { hasMatrices, matrixLinear } from './linear-matrix';
import { range, storageBytes } from './text';

/** Tensors of a call. Only those that the shape names are given. */
export interface LinearOperands {
  readonly rows: number;
  /** [rows, K] */
  readonly x: RowView;
  /** [rows, N] */
  readonly y: RowView;
  /** f32 or bf16 [N, K] */
  readonly weight?: DeviceTensor | Operand;
  /** u8 [N, K/32, 32 or 16] */
  readonly values?: DeviceTensor | Operand;
  /** f32 [N, K/32] */
  readonly scales?: DeviceTensor | Operand;
  /** f32 [N] */
  readonly bias?: DeviceTensor | Operand;
  /** f32, the first row of a view of rows of N. */
  readonly gate?: RowView;
  /** f32 [rows, rank]: `x·downᵀ`, which a plain linear of `n` = rank computes. */
  readonly t?: RowView;
  /** f32 or bf16 [N, rank] */
  readonly up?: DeviceTensor | Operand;
  /** One u32, increased where a result, of four at a time, is clamped. */
  readonly overflows?: DeviceTensor | Operand;
}

/** Elements of k between two barriers. */
const step = 16;

type Tile = readonly [rows: number, columns: number, threadRows: number, threadColumns: number];

const tiles: readonly Tile[] = [
  [128, 128, 8, 8],
  [128, 64, 8, 8],
  [64, 128, 8, 8],
  [64, 64, 8, 8],
  [64, 64, 8, 4],
  [128, 64, 8, 4],
  [64, 32, 4, 4],
  [32, 32, 4, 4],
];

/** With tiles in f16, which help where it costs nothing to widen them: such GPUs have few registers for a thread. */
const halfTiles: readonly Tile[] = [
  [64, 64, 8, 4],
  [128, 128, 8, 8],
  [32, 32, 4, 4],
];

/** The variants that fit a device: classes of registers, and variants within a class, the best guess first. */
export function linearVariants(compute: Pick<Compute, 'features' | 'limits'>): LinearVariant[] {
  const half = compute.features.has('shader-f16');
  const of = (shared: 'f32' | 'f16', all: readonly Tile[]) =>
    all.map(([rows, columns, threadRows, threadColumns]): LinearVariant => {
      return { rows, columns, threadRows, threadColumns, shared };
    });
  return [...of('f32', tiles), ...of('f16', half ? halfTiles : [])].filter((variant) =>
    fits(compute, {
      threads: threadsOf(variant),
      workgroupBytes: workgroupBytes({ ...variant, shared: 'f32' }),
    }),
  );
}

/** Invocations of a workgroup. */
export function threadsOf({ rows, columns, threadRows, threadColumns }: LinearVariant): number {
  return (rows / threadRows) * (columns / threadColumns);
}

function workgroupBytes({ rows, columns, shared }: LinearVariant): number {
  return (rows + columns) * step * storageBytes(shared);
}

/**
 * The kernel of a variant for a shape. Sums run over ascending k, so variants with one type of shared memory
 * give the same bits.
 *
 * @throws RangeError for a shape that no kernel computes
 */
export const linearKernel: (variant: LinearVariant, shape: LinearShape) => Kernel = memoised(
  (requested: LinearVariant, shape: LinearShape) => {
    checkShape(shape);
    if (hasMatrices(requested, shape)) return matrixLinear(requested.matrix, shape);
    const variant = fitted(requested, shape);
    const threads = threadsOf(variant);
    const vector = variant.shared === 'f32' ? 'vec4<f32>' : 'vec4<f16>';
    const fills = [
      inputFill(shape, variant.rows, threads, vector),
      weightFill(shape, variant, threads, vector),
    ];
    const { weight, input, output, epilogue, k, n, rank } = shape;
    return defineKernel({
      name: `linear ${weight} ${input}→${output} ${k}×${n} ${epilogue}${rank ? ` rank ${rank}` : ''}, ${variantName(variant)}`,
      mode: 'exact',
      bindings: [...fills.flatMap(({ bindings }) => bindings), ...epilogueBindings(shape)],
      uniforms: ['rows', 'xFirst', ...epilogueUniforms(shape)],
      threads,
      workgroupBytes: workgroupBytes(variant),
      subgroup: variant.subgroup,
      ...(variant.shared === 'f16' && { needs: ['shader-f16'], directives: 'enable f16;' }),
      declarations: `
var<workgroup> tileX: array<${vector}, ${(variant.rows * step) / 4}>;
var<workgroup> tileW: array<${vector}, ${(variant.columns * step) / 4}>;
${fills.map(({ declarations }) => declarations).join('')}
${epilogueDeclarations(shape)}`,
      body: `
${tileLines(variant, shape)}
${body(variant, shape, fills)}
${epilogueLines(variant, shape)}`,
    });
  },
);

/** A result of few columns gets a narrow tile; what is stored in f32 may be larger than f16 can hold. */
function fitted(variant: LinearVariant, shape: LinearShape): LinearVariant {
  if (hasMatrices(variant, shape)) return { ...variant, ...variant.matrix };
  const { n, input } = shape;
  let { columns } = variant;
  while (columns / 2 >= Math.max(n, 4 * variant.threadColumns)) columns /= 2;
  return { ...variant, columns, shared: input === 'f32' ? 'f32' : variant.shared };
}

function variantName({ rows, columns, threadRows, threadColumns, shared }: LinearVariant): string {
  return `${rows}×${columns} by ${threadRows}×${threadColumns}${shared === 'f16' ? ' in f16' : ''}`;
}

/** The next step's words are loaded before this step's products, and converted behind the barrier. */
function body(variant: LinearVariant, { k }: LinearShape, fills: readonly Fill[]): string {
  const { rows, columns, threadRows, threadColumns } = variant;
  const across = columns / threadColumns;
  const weights = range(threadColumns).map(
    (j) =>
      `      let w${j} = vec4<f32>(tileW[part * ${columns}u + threadColumn + ${j * across}u]);`,
  );
  const products = range(threadRows).flatMap((i) => [
    `      { let a = vec4<f32>(tileX[part * ${rows}u + threadRow * ${threadRows}u + ${i}u]);`,
    ...range(threadColumns).map(
      (j) =>
        `      c${i}_${j} = fma(a.w, w${j}.w, fma(a.z, w${j}.z, fma(a.y, w${j}.y, fma(a.x, w${j}.x, c${i}_${j}))));`,
    ),
    '      }',
  ]);
  const sums = `    for (var part = 0u; part < 4u; part++) {
${[...weights, ...products].join('\n')}
    }`;
  return `
${accumulatorLines(variant)}
${stepLoop(fills, Math.ceil(k / step), sums)}`;
}

/** The shape of `x·Wᵀ` alone, in f32. */
export function productShape(of: Pick<LinearShape, 'k' | 'n' | 'weight' | 'input'>): LinearShape {
  return { ...of, output: 'f32', bias: false, rank: 0, epilogue: 'none' };
}

/** @throws RangeError for a shape that no linear kernel computes */
export function checkShape({ k, n, weight, output, rank, epilogue }: LinearShape): void {
  const whole = [k, n].every((size) => Number.isInteger(size) && size > 0) && rank % 4 === 0;
  const inBlocks = k % (weight === 'q8' || weight === 'q4' ? 32 : 4) === 0;
  const inPlace = epilogue !== 'none' && epilogue !== 'gelu';
  const packed = output === 'f32' || (n % 4 === 0 && !inPlace);
  if (whole && inBlocks && packed) return;
  throw new RangeError(`no linear kernel for ${k}×${n}, ${weight}, ${epilogue} to ${output}`);
}

/** A call of {@link linearKernel}. */
export function linearDispatch(
  variant: LinearVariant,
  shape: LinearShape,
  operands: LinearOperands,
): Dispatch {
  return linearCall(linearKernel(variant, shape), fitted(variant, shape), shape, operands);
}

/** The operands, uniforms and grid that linear kernels of every mode share. */
export function linearCall(
  kernel: Kernel,
  variant: LinearVariant,
  shape: LinearShape,
  operands: LinearOperands,
): Dispatch {
  const { rows, x, y, gate, t, weight, values, scales, bias, up, overflows } = operands;
  const tensors = { weight, values, scales, bias, up, overflows };
  const of = rowOperands({ x, y, gate, t });
  return {
    kernel,
    operands: { ...of.operands, ...defined(tensors) },
    uniforms: { ...of.uniforms, rows },
    groups: Math.ceil(rows / variant.rows) * Math.ceil(shape.n / variant.columns),
    flops: 2 * rows * shape.n * (shape.k + shape.rank),
  };
}

function defined<T>(values: Readonly<Record<string, T | undefined>>): Record<string, T> {
  return Object.fromEntries(
    Object.entries(values).filter((entry): entry is [string, T] => entry[1] !== undefined),
  );
}

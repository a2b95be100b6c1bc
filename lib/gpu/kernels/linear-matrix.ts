import { matrixFeature } from '../../contract';
import type { LinearShape, LinearVariant, MatrixTiling, SubgroupMatrices } from './choice';
import type { Compute, MatrixConfig } from './compute';
import { defineKernel, type Kernel } from './kernel';
import {
  accumulatorLines,
  epilogueBindings,
  epilogueDeclarations,
  epilogueLines,
  epilogueUniforms,
  tileLines,
} from './linear-epilogue';
import { levelsOfBytes, levelsOfNibbles, stepLoop } from './linear-fill';
import { registersOf } from './registers';
import { lines, range } from './text';

/*
 * The linear on the GPU's matrix units, by the WGSL proposal of subgroup matrices (gpuweb, proposals/
 * subgroup-matrix.md): products of f16, sums in f32. Weights are rounded to f16 when they are dequantised.
 */

/** The matrices, their f16 operands, and what tells which part of the tile a subgroup computes. */
export const matrixFeatures = [matrixFeature, 'shader-f16', 'subgroups', 'subgroup_id'];

/** What the text of a kernel of matrices needs. */
export const matrixText = {
  mode: 'matrix',
  needs: matrixFeatures,
  directives: `enable f16;
enable subgroups;
enable chromium_experimental_subgroup_matrix;
diagnostic(off, chromium.subgroup_matrix_uniformity);`,
  builtins: '@builtin(subgroup_id) subgroup: u32',
} as const;

/** The matrices of a device, the largest first; none where it lacks something that kernels of matrices need. */
export function deviceMatrices(
  compute: Pick<Compute, 'features' | 'matrices' | 'subgroupSizes'>,
): readonly SubgroupMatrices[] {
  if (!matrixFeatures.every((feature) => compute.features.has(feature))) return [];
  const { configs, subgroupSize } = compute.matrices ?? { configs: [], subgroupSize: 0 };
  // Such GPUs were reported to compute wrong numbers in smaller subgroups, which their compilers may choose.
  const pinned = registersOf(compute)?.subgroup !== undefined;
  return configs
    .toSorted((a, b) => b.m * b.n * b.k - a.m * a.n * a.k)
    .map((config) => ({ ...config, subgroupSize, ...(pinned && { subgroup: subgroupSize }) }));
}

/** A linear variant that has matrices, and for the shapes that they cannot compute a tile of its own. */
export type MatrixVariant = LinearVariant & { readonly matrix: MatrixTiling };

/** Elements of k between two barriers: a block of the weight. */
export const matrixStep = 32;
/** Words of eight f16 in a row of a tile, in which matrices have their offsets and strides. */
export const stepWords = matrixStep / 8;
/** Words from one row to the next: the rest keeps rows apart in the banks of the memory. */
export const rowWords = stepWords + 1;

/** A tile, and the parts that subgroups compute. */
export type MatrixTile = readonly [rows: number, columns: number, down: number, across: number];

type MatrixDevice = Pick<Compute, 'features' | 'limits' | 'matrices' | 'subgroupSizes'>;

const tiles: readonly MatrixTile[] = [
  [128, 128, 2, 2],
  [256, 128, 4, 2],
  [128, 64, 2, 2],
  [64, 64, 1, 2],
  [32, 32, 2, 2],
];

/** The tilings of linears that fit a device, the best guess first; none where it has no such matrices. */
export function matrixTilings(compute: MatrixDevice): MatrixTiling[] {
  return fittingTilings(compute, tiles, (tiling) => {
    const { rows, columns, m } = tiling;
    const { threadRows } = storedBy(tiling);
    const threads = threadsOf(tiling);
    return (
      // Rows of a thread within one matrix, and as many words of the tiles for each thread.
      [threadRows, m / threadRows, (stepWords * rows) / threads, (2 * columns) / threads].every(
        Number.isInteger,
      ) && 16 * wordsOf(tiling) <= compute.limits.workgroupBytes
    );
  });
}

/** Tiles with the largest matrices of a device that suit some, of those that are whole matrices and not too many threads. */
export function fittingTilings(
  compute: MatrixDevice,
  shapes: readonly MatrixTile[],
  fits: (tiling: MatrixTiling) => boolean,
): MatrixTiling[] {
  const fitting = (matrices: SubgroupMatrices) =>
    shapes
      .map(([rows, columns, down, across]): MatrixTiling => {
        return { ...matrices, rows, columns, down, across };
      })
      .filter((tiling) => {
        const { m, n, k, rows, columns, down, across } = tiling;
        return (
          [rows / down / m, columns / across / n, matrixStep / k].every(Number.isInteger) &&
          threadsOf(tiling) <= compute.limits.threads &&
          fits(tiling)
        );
      });
  return (
    deviceMatrices(compute)
      .map(fitting)
      .find((tilings) => tilings.length > 0) ?? []
  );
}

/** Each tiling with the best guess of what computes the other shapes; on a slow compiler the smallest tile is last. */
export function matrixLinearVariants(
  device: MatrixDevice,
  linear: readonly LinearVariant[],
): LinearVariant[] {
  const tilings = matrixTilings(device);
  return tilings.flatMap((matrix, index) => {
    const plain = linear.at(index === tilings.length - 1 ? -1 : 0);
    return plain ? [{ ...plain, matrix }] : [];
  });
}

/** Invocations of a workgroup. */
export function threadsOf({ subgroupSize, down, across }: MatrixTiling): number {
  return subgroupSize * down * across;
}

/** Numbers that a thread of a subgroup adds to. */
export function matrixResults(tiling: MatrixTiling): number {
  return (tiling.rows * tiling.columns) / threadsOf(tiling);
}

/** The results that a thread stores of one row of matrices of each part. */
function storedBy(tiling: MatrixTiling) {
  const { rows, columns, down, m } = tiling;
  const threadRows = (down * m * columns) / threadsOf(tiling) / 4;
  return { rows, columns, threadRows, threadColumns: 4 };
}

/** Words of both tiles in workgroup memory; one row of matrices of each part takes their place. */
function wordsOf({ rows, columns, down, m }: MatrixTiling): number {
  return Math.max((rows + columns) * rowWords, (down * m * columns) / 4);
}

/** Whether matrices compute a shape: a quantised weight on rows in f16. The other ones are computed exactly. */
export function hasMatrices(
  variant: LinearVariant,
  { weight, input }: LinearShape,
): variant is MatrixVariant {
  return variant.matrix !== undefined && weight.startsWith('q') && input === 'f16';
}

/** The kernel for a shape that {@link hasMatrices}. */
export function matrixLinear(matrix: MatrixTiling, shape: LinearShape): Kernel {
  const { rows, columns } = matrix;
  const { weight, output, epilogue, k, n, rank } = shape;
  const threads = threadsOf(matrix);
  const size = `${matrix.m}×${matrix.n}×${matrix.k}`;
  const { down, across } = matrix;
  return defineKernel({
    name: `matrix linear ${weight} f16→${output} ${k}×${n} ${epilogue}${rank ? ` rank ${rank}` : ''}, ${rows}×${columns} by ${down}×${across} of ${size}`,
    bindings: [
      { name: 'x', access: 'read', element: 'vec4<u32>' },
      { name: 'values', access: 'read', element: weight === 'q8' ? 'vec4<u32>' : 'vec2<u32>' },
      { name: 'scales', access: 'read', element: 'f32' },
      ...epilogueBindings(shape),
    ],
    uniforms: ['rows', 'xFirst', ...epilogueUniforms(shape)],
    threads,
    workgroupBytes: 16 * wordsOf(matrix),
    subgroup: matrix.subgroup,
    ...matrixText,
    declarations: `
var<workgroup> tile: array<vec4<u32>, ${wordsOf(matrix)}>;
${weight === 'q8' ? levelsOfBytes : levelsOfNibbles}
${epilogueDeclarations(shape)}`,
    body: `
${tileLines(storedBy(matrix), shape)}
${bodyText(matrix, shape, threads)}
${resultText(matrix, shape)}`,
  });
}

/** The types of matrices in WGSL. */
export const typesOf = ({ m, n, k }: MatrixConfig) => ({
  // Columns come before rows.
  left: `subgroup_matrix_left<f16, ${k}, ${m}>`,
  right: `subgroup_matrix_right<f16, ${n}, ${k}>`,
  result: `subgroup_matrix_result<f32, ${n}, ${m}>`,
});

/** Matrices of a part: down and across. */
export const matricesOf = ({ rows, columns, down, across, m, n }: MatrixTiling) => ({
  down: rows / down / m,
  across: columns / across / n,
});

/**
 * Statements: the part of a subgroup, with `partRow` and `partColumn`, and its sums `s{i}_{j}`. The compiler does not
 * check an access that it knows to lie within a tile: so the part has a bound.
 */
export function partLines(matrix: MatrixTiling): string {
  const { rows, columns } = matrix;
  const { down, across } = matricesOf(matrix);
  return `
  let part = min(subgroup, ${matrix.down * matrix.across - 1}u);
  let partRow = part / ${matrix.across}u * ${rows / matrix.down}u;
  let partColumn = part % ${matrix.across}u * ${columns / matrix.across}u;
${range(down)
  .flatMap((i) => range(across).map((j) => `  var s${i}_${j} = ${typesOf(matrix).result}();`))
  .join('\n')}`;
}

/**
 * Statements that add a step to the sums. A subgroup beyond the parts, where subgroups are smaller than the largest,
 * only helps to fill the tiles.
 *
 * @param at arguments of `subgroupMatrixLoad`, and which indices are next to each other, of the matrix with this
 *   first row (left) or column (right) of the part, and this first k
 */
export function productLines(
  matrix: MatrixTiling,
  at: {
    readonly left: (row: number, k: number) => MatrixPlace;
    readonly right: (column: number, k: number) => MatrixPlace;
  },
): string {
  const { m, n, k } = matrix;
  const { down, across } = matricesOf(matrix);
  const { left, right } = typesOf(matrix);
  const load = (type: string, [order, place]: MatrixPlace) =>
    `subgroupMatrixLoad<${type}, ${order}>(${place})`;
  const lines = range(matrixStep / k).flatMap((part) => [
    ...range(down).map((i) => `let l${part}_${i} = ${load(left, at.left(i * m, part * k))};`),
    ...range(across).flatMap((j) => [
      `let r${part}_${j} = ${load(right, at.right(j * n, part * k))};`,
      ...range(down).map(
        (i) =>
          `s${i}_${j} = subgroupMatrixMultiplyAccumulate(l${part}_${i}, r${part}_${j}, s${i}_${j});`,
      ),
    ]),
  ]);
  return `    if (subgroup < ${matrix.down * matrix.across}u) {
      ${lines.join('\n      ')}
    }`;
}

type MatrixPlace = readonly [order: 'row_major' | 'col_major', place: string];

function bodyText(matrix: MatrixTiling, shape: LinearShape, threads: number): string {
  const { rows, columns } = matrix;
  const place = (row: string, k: number) =>
    `&tile, (${row}) * ${rowWords}u + ${k / 8}u, ${rowWords}u`;
  return `${partLines(matrix)}
${stepLoop(
  [inputFill(shape, rows, threads), weightFill(shape, { rows, columns, threads })],
  shape.k / matrixStep,
  productLines(matrix, {
    left: (row, k) => ['row_major', place(`partRow + ${row}u`, k)],
    // The columns of the weight lie behind the rows of x.
    right: (column, k) => ['col_major', place(`partColumn + ${rows + column}u`, k)],
  }),
)}`;
}

/** One row of matrices of each part after the other goes through workgroup memory to the epilogue. */
function resultText(matrix: MatrixTiling, shape: LinearShape): string {
  const { rows, columns, m, n } = matrix;
  const { down, across } = matricesOf(matrix);
  const geometry = storedBy(matrix);
  const { threadRows } = geometry;
  return lines(down, (i) => {
    const stores = range(across).map(
      (j) =>
        `subgroupMatrixStore<row_major>(&tile, part / ${matrix.across}u * ${(m * columns) / 4}u + (partColumn + ${j * n}u) / 4u, s${i}_${j}, ${columns / 4}u);`,
    );
    const loads = range(threadRows).map(
      (row) => `{
      let v = bitcast<vec4<f32>>(tile[(firstSum + ${row}u) * ${columns / 4}u + threadColumn]);
      ${range(4)
        .map((j) => `c${row}_${j} = v[${j}];`)
        .join(' ')}
    }`,
    );
    return `
  workgroupBarrier();
  if (subgroup < ${matrix.down * matrix.across}u) {
    ${stores.join('\n    ')}
  }
  workgroupBarrier();
  {
    let firstSum = threadRow * ${threadRows}u;
    let firstRow = tileRow + firstSum / ${m}u * ${rows / matrix.down}u + ${i * m}u + firstSum % ${m}u;
    ${accumulatorLines(geometry)}
    ${loads.join('\n    ')}
    {
      let tileRow = firstRow;
      let threadRow = 0u;
${epilogueLines(geometry, shape)}
    }
  }`;
  });
}

/** What a thread loads of x: threads lie along the words of a row. */
function inputFill({ k }: LinearShape, rows: number, threads: number) {
  const turns = range((stepWords * rows) / threads);
  const slot = (turn: number) => `(thread / ${stepWords}u + ${(turn * threads) / stepWords}u)`;
  const each = (text: (turn: number) => string) => turns.map(text).join('\n');
  return {
    active: null,
    setup: `  let xWord = thread % ${stepWords}u;
${each(
  (
    turn,
  ) => `  let xRow${turn} = (min(tileRow + ${slot(turn)}, uniforms.rows - 1u) + uniforms.xFirst) * ${k / 8}u + xWord;
  var x${turn} = vec4<u32>();`,
)}`,
    load: each((turn) => `    x${turn} = x[xRow${turn} + step * ${stepWords}u];`),
    store: each((turn) => `    tile[${slot(turn)} * ${rowWords}u + xWord] = x${turn};`),
  };
}

/** The same of a weight: two words of 16 levels to a row, and their scale. */
function weightFill(
  { k, n, weight }: LinearShape,
  { rows, columns, threads }: Pick<MatrixTiling, 'rows' | 'columns'> & { readonly threads: number },
) {
  const turns = range((2 * columns) / threads);
  const slot = (turn: number) => `(thread / 2u + ${(turn * threads) / 2}u)`;
  const each = (text: (turn: number) => string) => turns.map(text).join('\n');
  const type = weight === 'q8' ? 'vec4<u32>' : 'vec2<u32>';
  const half = (turn: number, quad: number) => {
    const word =
      weight === 'q8'
        ? `w${turn}.${'xyzw'[quad]}`
        : `w${turn}.${quad < 2 ? 'x' : 'y'}${quad % 2 ? ' >> 16u' : ''}`;
    return `bitcast<vec2<u32>>(vec4<f16>(levels(${word}) * scale${turn}))`;
  };
  const store = (turn: number, word: number) =>
    `    tile[(${slot(turn)} + ${rows}u) * ${rowWords}u + 2u * wWord + ${word}u] = vec4<u32>(${half(turn, 2 * word)}, ${half(turn, 2 * word + 1)});`;
  return {
    active: null,
    setup: `  let wWord = thread % 2u;
${each(
  (turn) => `  let wRow${turn} = min(tileColumn + ${slot(turn)}, ${n - 1}u);
  var scale${turn} = 0.0;
  var w${turn} = ${type}();`,
)}`,
    load: each(
      (turn) => `    scale${turn} = scales[wRow${turn} * ${k / 32}u + step];
    w${turn} = values[wRow${turn} * ${k / 16}u + step * 2u + wWord];`,
    ),
    store: each((turn) => `${store(turn, 0)}\n${store(turn, 1)}`),
  };
}

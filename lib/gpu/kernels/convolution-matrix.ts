import { memoised } from '../../graph';
import {
  type ConvolutionShape,
  type ConvolutionVariant,
  channelStep,
  checkConvolutionShape,
  convolutionUniforms,
  frameFunction,
  nextLines,
  placeLines,
  resultBindings,
  shapeName,
  storeFunction,
} from './convolution';
import { defineKernel, type Kernel, type KernelBinding } from './kernel';
import {
  fittingTilings,
  type MatrixTile,
  type MatrixTiling,
  matricesOf,
  matrixStep,
  matrixText,
  partLines,
  productLines,
  threadsOf,
} from './linear-matrix';
import { halfFunctions, vectorBinding } from './text';

/*
 * The convolution on the GPU's matrix units: products of f16, sums in f32. Tiles lie in workgroup memory as words of
 * eight f16, in the units of which their matrices have offsets and strides.
 */

/** Words of a row of the tile of x, which has the channels of a step; one more keeps rows apart in the memory's banks. */
const stepWords = matrixStep / 8;
const inputStride = stepWords + 1;
const weightStride = (columns: number) => columns / 8 + 1;

const tiles: readonly MatrixTile[] = [
  [128, 128, 2, 4],
  [128, 128, 2, 2],
  [128, 64, 4, 2],
  [128, 64, 2, 2],
  [64, 128, 2, 4],
  [64, 64, 2, 2],
  [32, 32, 2, 2],
];

/**
 * The tilings that fit a device, the best guess first, each with the best guess of what computes the other shapes; none
 * where it has no such matrices.
 */
export function matrixConvolutionVariants(
  compute: Parameters<typeof fittingTilings>[0],
  [plain]: readonly ConvolutionVariant[],
): ConvolutionVariant[] {
  if (!plain) return [];
  const tilings = fittingTilings(
    compute,
    tiles,
    // Whole pixels for each thread.
    (tiling) =>
      Number.isInteger((tiling.rows * stepWords) / threadsOf(tiling)) &&
      workgroupBytes(tiling) <= compute.limits.workgroupBytes,
  );
  return tilings.map((matrix) => ({ ...plain, matrix }));
}

function workgroupBytes(tiling: MatrixTiling): number {
  const { rows, columns, down, across, m, n } = tiling;
  const words = rows * inputStride + matrixStep * weightStride(columns);
  return 16 * words + 4 * down * across * m * n;
}

/** Channels of a convolution. */
export interface MatrixSizes {
  readonly inputs: number;
  readonly filters: number;
  /** 0 without a shortcut. */
  readonly sideInputs: number;
}

/**
 * The tiling for a convolution; null for what is computed exactly: weights in f32, few filters, and channels that are
 * no multiple of 8.
 */
export function matrixTilingOf(
  { matrix }: ConvolutionVariant,
  { weight, residual }: ConvolutionShape,
  { inputs, filters, sideInputs }: MatrixSizes,
): MatrixTiling | null {
  const channels = [inputs, filters, residual === 'linear' ? sideInputs : 0];
  if (!matrix || weight !== 'f16' || filters <= channelStep) return null;
  return channels.every((count) => count % 8 === 0) ? fittedTiling(matrix, filters) : null;
}

/** A narrower tile where half of it would be empty. */
export function fittedTiling(matrix: MatrixTiling, filters: number): MatrixTiling {
  const columns = matrix.columns / 2;
  const fits = columns >= filters && Number.isInteger(columns / matrix.across / matrix.n);
  return fits ? fittedTiling({ ...matrix, columns }, filters) : matrix;
}

/** The kernel of a tiling for a shape with weights in f16. */
export const matrixConvolution = memoised(buildKernel);

function buildKernel(matrix: MatrixTiling, shape: ConvolutionShape): Kernel {
  const { rows, columns, m, n, down, across } = matrix;
  checkConvolutionShape(shape);
  const words = (name: string): KernelBinding =>
    shape.input === 'f16' ? wordBinding(name) : vectorBinding(name, 'read', 'f32');
  const side =
    shape.residual === 'linear' ? words('side') : vectorBinding('side', 'read', shape.side);
  const read = (binding: string, index: string) =>
    shape.input === 'f16'
      ? `${binding}[${index}]`
      : `vec4<u32>(packHalf4(${binding}[2u * (${index})]), packHalf4(${binding}[2u * (${index}) + 1u]))`;
  return defineKernel({
    ...matrixText,
    name: `matrix convolution ${shapeName(shape)} ${rows}×${columns} by ${down}×${across} of ${m}×${n}×${matrix.k}`,
    bindings: [
      ...range(shape.frames).map((age) => words(`x${age}`)),
      wordBinding('weights'),
      ...resultBindings(shape, side),
    ],
    uniforms: convolutionUniforms,
    threads: threadsOf(matrix),
    workgroupBytes: workgroupBytes(matrix),
    declarations: `${halfFunctions}
var<workgroup> tileX: array<vec4<u32>, ${rows * inputStride}>;
var<workgroup> tileW: array<vec4<u32>, ${matrixStep * weightStride(columns)}>;
var<workgroup> sums: array<vec4<f32>, ${(down * across * m * n) / 4}>;
${frameFunction('frame8', 'vec4<u32>', shape, (binding) => read(binding, 'index'))}
${storeFunction(shape)}`,
    body: `${placeLines({ pixels: rows, filters: columns }, shape)}
${loopText(matrix, shape, read)}
${resultText(matrix)}`,
  });
}

const range = (count: number) => Array.from({ length: count }, (_, i) => i);

const wordBinding = (name: string): KernelBinding => ({
  name,
  access: 'read',
  element: 'vec4<u32>',
});

/** The loop over frames, taps and channels. Channels are in groups of four, as those of the exact kernel. */
function loopText(
  matrix: MatrixTiling,
  { residual }: ConvolutionShape,
  read: (binding: string, index: string) => string,
): string {
  const { rows, columns } = matrix;
  const threads = threadsOf(matrix);
  const pixels = range((rows * stepWords) / threads);
  const weightWords = (matrixStep * columns) / 8;
  const weights = range(Math.ceil(weightWords / threads));
  const item = (i: number) => `(thread + ${i * threads}u)`;
  /** A step has more words of the tile than there are threads in all turns but the last. */
  const guarded = (i: number, text: string) =>
    (i + 1) * threads > weightWords ? `if (${item(i)} < ${weightWords}u) { ${text} }` : text;
  const slot = (i: number) => `(thread / ${stepWords}u + ${(i * threads) / stepWords}u)`;
  const shortcut = `
    if (age == uniforms.frames) {
      let c = channel / 2u + quarter;
${pixels
  .map(
    (i) => `      fetchedX${i} = vec4<u32>();
      if (c < uniforms.sideChannels / 2u) {
        fetchedX${i} = ${read('side', `((row${i} + uniforms.sideFirst) * uniforms.outputWidth + column${i}) * (uniforms.sideChannels / 2u) + c`)};
      }`,
  )
  .join('\n')}
    } else`;
  const fetch = `${residual === 'linear' ? shortcut : ''}
    {
      let c = channel / 2u + quarter;
      let isChannel = c < uniforms.channels / 2u;
      let shift = (dy * uniforms.width + dx) * (uniforms.channels / 2u) + c;
${pixels
  .map(
    (i) => `      fetchedX${i} = vec4<u32>();
      if (isChannel && top${i} + dy < uniforms.height && left${i} + dx < uniforms.width) {
        fetchedX${i} = frame8(age, first${i} + shift);
      }`,
  )
  .join('\n')}
    }
${weights
  .map(
    (i) =>
      `    fetchedW${i} = weights[(weightRow + ${item(i)} / ${columns / 8}u) * filterWords + min(firstVector / 2u + ${item(i)} % ${columns / 8}u, filterWords - 1u)];`,
  )
  .join('\n')}`;
  return `  let filterWords = uniforms.filters / 8u;
  let quarter = thread % ${stepWords}u;
${pixels
  .map(
    (
      i,
    ) => `  let pixel${i} = uniforms.firstPixel + min(firstTilePixel + ${slot(i)}, uniforms.pixels - 1u);
  let row${i} = pixel${i} / uniforms.outputWidth;
  let column${i} = pixel${i} % uniforms.outputWidth;
  let top${i} = row${i} * uniforms.stride + phaseRow - uniforms.padTop;
  let left${i} = column${i} * uniforms.stride + phaseColumn - uniforms.padLeft;
  let first${i} = ((top${i} + uniforms.xFirst) * uniforms.width + left${i}) * (uniforms.channels / 2u);
  var fetchedX${i} = vec4<u32>();`,
  )
  .join('\n')}
${weights.map((i) => `  var fetchedW${i} = vec4<u32>();`).join('\n')}
${partLines(matrix)}
  var age = 0u;
  var dy = 0u;
  var dx = 0u;
  var channel = 0u;
  var weightRow = phase * uniforms.phaseRows;
  {${fetch}
  }
  for (var step = 1u; step <= uniforms.steps; step++) {
${pixels.map((i) => `    tileX[${slot(i)} * ${inputStride}u + quarter] = fetchedX${i};`).join('\n')}
${weights
  .map(
    (i) =>
      `    ${guarded(i, `tileW[${item(i)} / ${columns / 8}u * ${weightStride(columns)}u + ${item(i)} % ${columns / 8}u] = fetchedW${i};`)}`,
  )
  .join('\n')}
    workgroupBarrier();
    // The next step's loads are under way while this one is computed.
${nextLines(matrixStep)}
    if (step < uniforms.steps) {${fetch}
    }
${productLines(matrix, {
  left: (row, k) => [
    'row_major',
    `&tileX, (partRow + ${row}u) * ${inputStride}u + ${k / 8}u, ${inputStride}u`,
  ],
  right: (column, k) => [
    'row_major',
    `&tileW, ${k * weightStride(columns)}u + (partColumn + ${column}u) / 8u, ${weightStride(columns)}u`,
  ],
})}
    workgroupBarrier();
  }`;
}

/** One matrix of each part after the other goes through workgroup memory. */
function resultText(matrix: MatrixTiling): string {
  const { rows, columns, m, n, down, across } = matrix;
  const parts = down * across;
  const threads = threadsOf(matrix);
  const items = (parts * m * n) / 4;
  const inPart = (m * n) / 4;
  const counts = matricesOf(matrix);
  const stores = (i: number, j: number) =>
    range(Math.ceil(items / threads)).map((turn) => {
      const item = `(thread + ${turn * threads}u)`;
      const part = `${item} / ${inPart}u`;
      const pixel = `${part} / ${across}u * ${rows / down}u + ${i * m}u + ${item} % ${inPart}u / ${n / 4}u`;
      const vector = `${part} % ${across}u * ${columns / across / 4}u + ${(j * n) / 4}u + ${item} % ${n / 4}u`;
      const store = `store(firstTilePixel + ${pixel}, firstVector + ${vector}, phase, sums[${item}]);`;
      return (turn + 1) * threads > items ? `if (${item} < ${items}u) { ${store} }` : store;
    });
  return range(counts.down)
    .flatMap((i) =>
      range(counts.across).map(
        (j) => `
  if (subgroup < ${parts}u) {
    subgroupMatrixStore<row_major>(&sums, subgroup * ${inPart}u, s${i}_${j}, ${n / 4}u);
  }
  workgroupBarrier();
  ${stores(i, j).join('\n  ')}
  workgroupBarrier();`,
      ),
    )
    .join('\n');
}

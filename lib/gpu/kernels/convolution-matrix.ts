import { memoised } from '../../graph';
import type {
  ConvolutionShape,
  ConvolutionTiling,
  ConvolutionVariant,
  MatrixTiling,
} from './choice';
import {
  channelStep,
  checkConvolutionShape,
  convolutionUniforms,
  firstLines,
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
  matricesOf,
  matrixStep,
  matrixText,
  partLines,
  productLines,
  rowWords,
  stepWords,
  threadsOf,
} from './linear-matrix';
import { halfFunctions, range, vectorBinding } from './text';

/*
 * The convolution on the GPU's matrix units: products of f16, sums in f32. Tiles lie in workgroup memory as words of
 * eight f16, in the units of which their matrices have offsets and strides.
 */

const weightStride = (columns: number) => columns / 8 + 1;

/** Pixels across of a tile that has its surroundings. */
const windowWidth = 16;

const windowTiles: readonly MatrixTile[] = [
  [128, 64, 2, 2],
  [128, 128, 2, 4],
  [128, 128, 2, 2],
  [64, 64, 2, 2],
  [32, 32, 2, 2],
];

/** Slower for 3×3, with less of the workgroup's memory. */
const runTiles: readonly MatrixTile[] = [
  [128, 128, 2, 4],
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
  const fits = (tiling: ConvolutionTiling) =>
    // Whole pixels for each thread.
    Number.isInteger((tiling.rows * stepWords) / threadsOf(tiling)) &&
    workgroupBytes(tiling) <= compute.limits.workgroupBytes;
  const windowed = (tiling: MatrixTiling) => ({ ...tiling, window: windowWidth });
  const windows = fittingTilings(compute, windowTiles, (tiling) => {
    const { rows, down, m } = tiling;
    return (rows / down) % windowWidth === 0 && windowWidth % m === 0 && fits(windowed(tiling));
  });
  const runs = fittingTilings(compute, runTiles, fits);
  return [...windows.map(windowed), ...runs].map((matrix) => ({ ...plain, matrix }));
}

/** Words of the tiles in workgroup memory. Results take the place of x. */
function wordsOf({ rows, columns, down, across, m, n, window }: ConvolutionTiling) {
  const pixels = window ? (window + 2) * (rows / window + 2) : rows;
  return {
    x: Math.max(pixels * rowWords, (down * across * m * n) / 4),
    // Those of a step are stored while others are read.
    weights: matrixStep * weightStride(columns) * (window ? 2 : 1),
  };
}

function workgroupBytes(tiling: ConvolutionTiling): number {
  const { x, weights } = wordsOf(tiling);
  return 16 * (x + weights);
}

/** Sizes of a convolution. */
export interface MatrixSizes {
  /** Whether it is 3×3, with the pixel in the middle. */
  readonly centred: boolean;
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
  { centred, inputs, filters, sideInputs }: MatrixSizes,
): ConvolutionTiling | null {
  const channels = [inputs, filters, residual === 'linear' ? sideInputs : 0];
  if (!matrix || weight !== 'f16' || filters <= channelStep) return null;
  if (!channels.every((count) => count % 8 === 0)) return null;
  const { window, ...run } = fittedTiling(matrix, filters);
  return window && centred ? { ...run, window } : run;
}

/** The form that computes what is not 3×3. */
export function withoutWindow(variant: ConvolutionVariant): ConvolutionVariant {
  if (!variant.matrix?.window) return variant;
  const { window: _, ...matrix } = variant.matrix;
  return { ...variant, matrix };
}

/** A narrower tile where half of it would be empty. */
export function fittedTiling(matrix: ConvolutionTiling, filters: number): ConvolutionTiling {
  const columns = matrix.columns / 2;
  const fits = columns >= filters && Number.isInteger(columns / matrix.across / matrix.n);
  return fits ? fittedTiling({ ...matrix, columns }, filters) : matrix;
}

/** The kernel of a tiling for a shape with weights in f16. */
export const matrixConvolution = memoised(buildKernel);

function buildKernel(matrix: ConvolutionTiling, shape: ConvolutionShape): Kernel {
  const { rows, columns, m, n, down, across, window } = matrix;
  const memory = wordsOf(matrix);
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
    name: `matrix convolution ${shapeName(shape)} ${rows}×${columns}${window ? ` window ${window}` : ''} by ${down}×${across} of ${m}×${n}×${matrix.k}`,
    bindings: [
      ...range(shape.frames).map((age) => words(`x${age}`)),
      wordBinding('weights'),
      ...resultBindings(shape, side),
    ],
    uniforms: convolutionUniforms,
    threads: threadsOf(matrix),
    workgroupBytes: workgroupBytes(matrix),
    subgroup: matrix.subgroup,
    declarations: `${halfFunctions}
var<workgroup> tileX: array<vec4<u32>, ${memory.x}>;
var<workgroup> tileW: array<vec4<u32>, ${memory.weights}>;
${frameFunction('frame8', 'vec4<u32>', shape, (binding) => read(binding, 'index'))}
${storeFunction(shape)}`,
    body: `${placeLines({ pixels: rows, filters: columns }, shape)}
${window ? windowText(matrix, window, shape, read) : runText(matrix, shape, read)}
${resultText(matrix)}`,
  });
}

const wordBinding = (name: string): KernelBinding => ({
  name,
  access: 'read',
  element: 'vec4<u32>',
});

/** An expression for a word of an image's binding. */
type Read = (binding: string, index: string) => string;

/** What a thread loads and stores of the weights of a step. */
function weightFill({ columns, ...matrix }: MatrixTiling) {
  const threads = threadsOf({ columns, ...matrix });
  const words = (matrixStep * columns) / 8;
  const turns = range(Math.ceil(words / threads));
  const item = (i: number) => `(thread + ${i * threads}u)`;
  const row = (i: number) => `${item(i)} / ${columns / 8}u`;
  const column = (i: number) => `${item(i)} % ${columns / 8}u`;
  const each = (text: (i: number) => string) => turns.map(text).join('\n');
  return {
    setup: `  let filterWords = uniforms.filters / 8u;
${each(
  (i) => `  let column${i}W = min(firstVector / 2u + ${column(i)}, filterWords - 1u);
  var fetchedW${i} = vec4<u32>();`,
)}`,
    fetch: each(
      (i) => `    fetchedW${i} = weights[(weightRow + ${row(i)}) * filterWords + column${i}W];`,
    ),
    /** @param first where they begin in their tile */
    store: (first: string) =>
      each((i) => {
        const text = `tileW[${first} + ${row(i)} * ${weightStride(columns)}u + ${column(i)}] = fetchedW${i};`;
        return (i + 1) * threads > words
          ? `    if (${item(i)} < ${words}u) { ${text} }`
          : `    ${text}`;
      }),
    /** Where the matrix of a column and a k of the part begins. */
    place: (first: string, column: number, k: number) =>
      `&tileW, ${first} + ${k * weightStride(columns)}u + (partColumn + ${column}u) / 8u, ${weightStride(columns)}u`,
  };
}

/** A function that reads at `index` of the frame of an age. */
function frameFunction(
  name: string,
  type: string,
  { frames }: ConvolutionShape,
  read: (binding: string) => string,
): string {
  return `fn ${name}(age: u32, index: u32) -> ${type} {
${range(frames)
  .slice(1)
  .map((age) => `  if (age == ${age}u) { return ${read(`x${age}`)}; }`)
  .join('\n')}
  return ${read('x0')};
}`;
}

/** The loop over frames, taps and channels. Channels are in groups of four, as those of the exact kernel. */
function runText(matrix: MatrixTiling, { residual }: ConvolutionShape, read: Read): string {
  const { rows } = matrix;
  const threads = threadsOf(matrix);
  const pixels = range((rows * stepWords) / threads);
  const weights = weightFill(matrix);
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
${weights.fetch}`;
  return `  let quarter = thread % ${stepWords}u;
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
${weights.setup}
${partLines(matrix)}
${firstLines}
  var weightRow = phase * uniforms.phaseRows;
  {${fetch}
  }
  for (var step = 1u; step <= uniforms.steps; step++) {
${pixels.map((i) => `    tileX[${slot(i)} * ${rowWords}u + quarter] = fetchedX${i};`).join('\n')}
${weights.store('0u')}
    workgroupBarrier();
    // The next step's loads are under way while this one is computed.
${nextLines(matrixStep, {
  next: `weightRow += ${matrixStep}u;`,
  behindTap: 'weightRow += (uniforms.channels + 3u) / 4u * 16u - 4u * channel;',
  ...(residual === 'linear' && { toSide: 'weightRow = uniforms.sideRow;' }),
})}
    if (step < uniforms.steps) {${fetch}
    }
${productLines(matrix, {
  left: (row, k) => [
    'row_major',
    `&tileX, (partRow + ${row}u) * ${rowWords}u + ${k / 8}u, ${rowWords}u`,
  ],
  right: (column, k) => ['row_major', weights.place('0u', column, k)],
})}
    workgroupBarrier();
  }`;
}

/** The same where all taps of some channels read one tile: channels of frames come before taps. */
function windowText(
  matrix: MatrixTiling,
  across: number,
  { residual }: ConvolutionShape,
  read: Read,
): string {
  const { rows } = matrix;
  const threads = threadsOf(matrix);
  const wide = across + 2;
  const words = stepWords * wide * (rows / across + 2);
  const pixels = range(Math.ceil(words / threads));
  const slot = (i: number) => `(thread / ${stepWords}u + ${(i * threads) / stepWords}u)`;
  const isSlot = (i: number) =>
    (i + 1) * threads > words ? `${slot(i)} < ${words / stepWords}u` : null;
  const weights = weightFill(matrix);
  const each = (text: (i: number) => string) => pixels.map(text).join('\n');
  const fetch = (binding: (i: number) => string, channels: string) => `
        let word = tileChannel / 2u + quarter;
        let isChannel = word < uniforms.${channels} / 2u;
${each(
  (i) => `        fetchedX${i} = vec4<u32>();
        if (inside${i} && isChannel) { fetchedX${i} = ${binding(i)}; }`,
)}`;
  const fetchX = `      if (tileAge < uniforms.frames) {${fetch((i) => `frame8(tileAge, first${i} + word)`, 'channels')}
      }${
        residual === 'linear'
          ? ` else {${fetch((i) => read('side', `side${i} + word`), 'sideChannels')}
      }`
          : ''
      }`;
  const fetchW = `      let frameRow = phase * uniforms.phaseRows + (9u * age + tap) * rowsOfTap;
      let weightRow = select(frameRow, uniforms.sideRow, age == uniforms.frames) + 4u * channel;
${weights.fetch}`;
  const half = matrixStep * weightStride(matrix.columns);
  return `  let tilesAcross = (uniforms.outputWidth + ${across - 1}u) / ${across}u;
  let tile = firstTilePixel / ${rows}u;
  let tileTop = tile / tilesAcross * ${rows / across}u;
  let tileLeft = tile % tilesAcross * ${across}u;
  let firstRow = uniforms.firstPixel / uniforms.outputWidth + tileTop;
  let rowsOfTap = (uniforms.channels + 3u) / 4u * 16u;
  let quarter = thread % ${stepWords}u;
${each(
  (i) => `  let y${i} = firstRow + ${slot(i)} / ${wide}u - uniforms.padTop;
  let x${i} = tileLeft + ${slot(i)} % ${wide}u - uniforms.padLeft;
  let inside${i} = ${isSlot(i) ? `${isSlot(i)} && ` : ''}y${i} < uniforms.height && x${i} < uniforms.width;
  let first${i} = ((y${i} + uniforms.xFirst) * uniforms.width + x${i}) * (uniforms.channels / 2u);
${
  residual === 'linear'
    ? `  let side${i} = ((y${i} + uniforms.sideFirst) * uniforms.outputWidth + x${i}) * (uniforms.sideChannels / 2u);\n`
    : ''
}  var fetchedX${i} = vec4<u32>();`,
)}
${weights.setup}
${partLines(matrix)}
  let partPixel = partRow / ${across}u * ${wide}u;
  // Of a step; of the tile of x that is loaded next.
  var age = 0u;
  var channel = 0u;
  var tap = 0u;
  var tileAge = 0u;
  var tileChannel = 0u;
  {
${fetchX}
  }
  {
${fetchW}
  }
  for (var step = 1u; step <= uniforms.steps; step++) {
    let isNew = tap == 0u;
    if (isNew) {
      workgroupBarrier();
${each((i) => {
  const store = `tileX[${slot(i)} * ${rowWords}u + quarter] = fetchedX${i};`;
  return `      ${isSlot(i) ? `if (${isSlot(i)}) { ${store} }` : store}`;
})}
    }
    let firstW = step % 2u * ${half}u;
${weights.store('firstW')}
    workgroupBarrier();
    let isSide = age == uniforms.frames;
    // The bound is for the compiler, which then checks no access.
    let shift = partPixel + min(select(tap / 3u * ${wide}u + tap % 3u, ${wide + 1}u, isSide), ${2 * wide + 2}u);
    // The next loads are under way while this step is computed.
    if (isNew) {
      tileChannel += ${matrixStep / 4}u;
      if (tileChannel >= uniforms.channels && tileAge < uniforms.frames) {
        tileChannel = 0u;
        tileAge += 1u;
      }
${fetchX}
    }
    tap += 1u;
    if (isSide || tap == 9u) {
      tap = 0u;
      channel += ${matrixStep / 4}u;
      if (channel >= uniforms.channels && !isSide) {
        channel = 0u;
        age += 1u;
      }
    }
    if (step < uniforms.steps) {
${fetchW}
    }
${productLines(matrix, {
  left: (row, k) => [
    'row_major',
    `&tileX, (shift + ${Math.floor(row / across) * wide + (row % across)}u) * ${rowWords}u + ${k / 8}u, ${rowWords}u`,
  ],
  right: (column, k) => ['row_major', weights.place('firstW', column, k)],
})}
  }
  workgroupBarrier();`;
}

/** One matrix of each part after the other goes through workgroup memory. */
function resultText(matrix: ConvolutionTiling): string {
  const { rows, columns, m, n, down, across, window } = matrix;
  const parts = down * across;
  const threads = threadsOf(matrix);
  const items = (parts * m * n) / 4;
  const inPart = (m * n) / 4;
  const counts = matricesOf(matrix);
  const stores = (i: number, j: number) =>
    range(Math.ceil(items / threads)).map((turn) => {
      const item = `(thread + ${turn * threads}u)`;
      const part = `${item} / ${inPart}u`;
      const row = `(${part} / ${across}u * ${rows / down}u + ${i * m}u + ${item} % ${inPart}u / ${n / 4}u)`;
      // Beside the image there is none.
      const column = `(tileLeft + ${row} % ${window}u)`;
      const pixel = window
        ? `select(uniforms.pixels, (tileTop + ${row} / ${window}u) * uniforms.outputWidth + ${column}, ${column} < uniforms.outputWidth)`
        : `firstTilePixel + ${row}`;
      const vector = `${part} % ${across}u * ${columns / across / 4}u + ${(j * n) / 4}u + ${item} % ${n / 4}u`;
      const store = `store(${pixel}, firstVector + ${vector}, phase, bitcast<vec4<f32>>(tileX[${item}]));`;
      return (turn + 1) * threads > items ? `if (${item} < ${items}u) { ${store} }` : store;
    });
  return range(counts.down)
    .flatMap((i) =>
      range(counts.across).map(
        (j) => `
  if (subgroup < ${parts}u) {
    subgroupMatrixStore<row_major>(&tileX, part * ${inPart}u, s${i}_${j}, ${n / 4}u);
  }
  workgroupBarrier();
  ${stores(i, j).join('\n  ')}
  workgroupBarrier();`,
      ),
    )
    .join('\n');
}

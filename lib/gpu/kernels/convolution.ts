import { memoised } from '../../graph';
import type { ConvolutionShape, ConvolutionVariant } from './choice';
import { type Compute, fits } from './compute';
import { defineKernel, type Kernel, type KernelBinding, type Storage } from './kernel';
import { halfFunctions, lines, load4, range, store4, vectorBinding } from './text';

/** What most convolutions have not. */
export const plainConvolution = {
  residual: 'none',
  bias: true,
  activation: null,
  shuffled: false,
  wholeVectors: true,
} as const;

/** Channels of a step of the inner loop; each tap's channels are filled up with zeros to a multiple. */
export const channelStep = 16;

/** The variants that fit a device, the best guess first. */
export function convolutionVariants(
  compute: Pick<Compute, 'features' | 'limits'>,
): ConvolutionVariant[] {
  const tiles = [
    [128, 128, 8, 8],
    [128, 64, 8, 8],
    [64, 128, 8, 8],
    [64, 64, 8, 8],
    [64, 64, 4, 8],
    [64, 64, 8, 4],
    [64, 64, 4, 4],
    [32, 64, 4, 8],
    [32, 32, 4, 4],
    // For emulated GPUs: it compiles in a second.
    [16, 16, 1, 4],
  ] as const;
  return tiles
    .map(([pixels, filters, threadPixels, threadFilters]) => ({
      pixels,
      filters,
      threadPixels,
      threadFilters,
    }))
    .filter((variant) =>
      fits(compute, { threads: threadsOf(variant), workgroupBytes: sharedBytes(variant) }),
    );
}

/** The variant for so many filters: a narrow one where most of a tile would be empty. */
export function fittedVariant(variant: ConvolutionVariant, filters: number): ConvolutionVariant {
  if (filters > channelStep || variant.filters <= channelStep) return variant;
  return { ...variant, pixels: 128, filters: 16, threadPixels: 4, threadFilters: 4 };
}

const hasSide = (residual: ConvolutionShape['residual']) =>
  residual !== 'none' && residual !== 'stored';

const sharedBytes = ({ pixels, filters }: ConvolutionVariant) =>
  4 * channelStep * (pixels + filters);

const threadsOf = ({ pixels, filters, threadPixels, threadFilters }: ConvolutionVariant) =>
  (pixels / threadPixels) * (filters / threadFilters);

/** The kernel of a variant for a shape. */
export const convolutionKernel = memoised(buildKernel);

export const convolutionUniforms = [
  'height', // of the input
  'width',
  'channels', // in groups of four, as all channels here
  'outputWidth', // of a phase
  'firstPixel', // of a phase, of this dispatch
  'pixels', // of a phase, in this dispatch
  'filters',
  'kernelHeight',
  'kernelWidth',
  'stride',
  'padTop',
  'padLeft',
  'scale', // pixels that a pixel becomes, along a side
  'frames', // that there are
  'xFirst', // row of the binding in which row 0 of the image would lie; so for the others
  'yFirst',
  'sideFirst',
  'sideChannels',
  'sideRow', // of the weights
  'phaseRows', // of the weights, of each phase
  'picks', // a byte for each phase
  'steps',
  'pixelTiles',
  'filterTiles',
] as const;

/** Tiles of pixels that are computed next to each other for the same filters. */
const sweep = 8;

function buildKernel(variant: ConvolutionVariant, shape: ConvolutionShape): Kernel {
  const { pixels, filters, threadPixels, threadFilters } = variant;
  const { input, weight, residual, side } = shape;
  checkConvolutionShape(shape);
  const threads = threadsOf(variant);
  const columns = filters / threadFilters;
  const rows = pixels / threadPixels;
  const vectors = filters / 4;
  const loads = range((pixels * 4) / threads);
  const weightLoads = range(Math.ceil((channelStep * vectors) / threads));
  const isLinear = residual === 'linear';

  const bindings: KernelBinding[] = [
    ...range(shape.frames).map((age) => vectorBinding(`x${age}`, 'read', input)),
    weight ? vectorBinding('weights', 'read', weight) : scalar('weights', 'read'),
    ...resultBindings(shape, vectorBinding('side', 'read', side)),
  ];
  const stored = (storage: Storage) => (storage === 'f32' ? 'vec4<f32>' : 'vec2<u32>');
  const widened = (storage: Storage, value: string) =>
    storage === 'f32' ? value : `unpackHalf4(${value})`;

  const declarations = `${halfFunctions}
var<workgroup> tileX: array<vec4<f32>, ${4 * pixels}>;
var<workgroup> tileW: array<vec4<f32>, ${channelStep * vectors}>;
${weight ? '' : filterFunction}
${storeFunction(shape)}`;

  const loadX = (binding: string, index: (shift: string) => string) =>
    loads
      .map((i) => `        fetchedX${i} = ${binding}[${index(`${(i * threads) / pixels}u`)}];`)
      .join('\n');
  // One branch for all loads of a frame: each of them with its own costs twice the instructions.
  const frameLoads = range(shape.frames)
    .reverse()
    .map((age) => {
      const from = loadX(`x${age}`, (shift) => `min(at + ${shift}, last)`);
      return `${age ? `if (age == ${age}u) ` : ''}{\n${from}\n      }`;
    });
  const sideLoads = `if (age == uniforms.frames) {
        let sidePixel = (pixel + uniforms.sideFirst * uniforms.outputWidth) * uniforms.sideChannels;
${loadX('side', (shift) => `sidePixel + min(channel + quarter + ${shift}, uniforms.sideChannels - 1u)`)}
    } else `;

  /** Loads of a step into registers, and the way to the next step. */
  const load = `
    let at = first + (dy * uniforms.width + dx) * uniforms.channels + channel;
${loads.map((i) => `    fetchedX${i} = ${stored(input)}();`).join('\n')}
    ${isLinear ? sideLoads : ''}if (row + dy < uniforms.height && column + dx < uniforms.width) {
      ${frameLoads.join(' else ')}
    }
${weightLoads
  .map((i) => {
    const rows = `${(i * threads) / vectors}u`;
    return weight
      ? `    fetchedW${i} = weights[weightAt + ${rows} * filterVectors];`
      : `    fetchedW${i} = filter4(vector, 4u * channel + thread / ${vectors}u + ${rows}, dy * uniforms.kernelWidth + dx);`;
  })
  .join('\n')}
${nextLines(channelStep, {
  next: `weightAt += ${channelStep}u * filterVectors;`,
  ...(isLinear && { toSide: 'weightAt = uniforms.sideRow * filterVectors + weightPlace;' }),
})}`;

  const tiles = (i: number, j: number) => `sum${i}_${j}`;
  const pixelItems = range(threadPixels);
  const vectorItems = range(threadFilters / 4);
  const store = [
    ...loads.map((i) => `    tileX[thread + ${i * threads}u] = ${widened(input, `fetchedX${i}`)};`),
    ...weightLoads.map((i) => {
      const line = `tileW[thread + ${i * threads}u] = ${widened(weight ?? 'f32', `fetchedW${i}`)};`;
      const isPartial = (i + 1) * threads > channelStep * vectors;
      return isPartial
        ? `    if (thread + ${i * threads}u < ${channelStep * vectors}u) { ${line} }`
        : `    ${line}`;
    }),
  ].join('\n');
  const productLines = (group: number) => [
    ...pixelItems.map((i) => `      let a${i} = tileX[threadRow + ${group * pixels + i * rows}u];`),
    ...['x', 'y', 'z', 'w'].flatMap((component, c) => [
      '      {',
      ...vectorItems.map(
        (j) =>
          `        let w${j} = tileW[threadColumn + ${(4 * group + c) * vectors + j * columns}u];`,
      ),
      ...pixelItems.flatMap((i) =>
        vectorItems.map((j) => `        ${tiles(i, j)} += a${i}.${component} * w${j};`),
      ),
      '      }',
    ]),
  ];
  const sums = range(channelStep / 4)
    .flatMap((group) => ['    {', ...productLines(group), '    }'])
    .join('\n');
  const body = `
${placeLines(variant, shape)}
  let threadRow = thread / ${columns}u;
  let threadColumn = thread % ${columns}u;
  let pixel = uniforms.firstPixel + min(firstTilePixel + thread % ${pixels}u, uniforms.pixels - 1u);
  let quarter = thread / ${pixels}u;
  let row = pixel / uniforms.outputWidth * uniforms.stride + phaseRow - uniforms.padTop;
  let column = pixel % uniforms.outputWidth * uniforms.stride + phaseColumn - uniforms.padLeft;
  let vector = min(firstVector + thread % ${vectors}u, filterVectors - 1u);
  let first = ((row + uniforms.xFirst) * uniforms.width + column) * uniforms.channels + quarter;
  // Behind a tap's channels are those of the next pixel, and their weights are zeros.
  let last = (uniforms.height + uniforms.xFirst) * uniforms.width * uniforms.channels - 1u;
  let weightPlace = thread / ${vectors}u * filterVectors + vector;
  var weightAt = phase * uniforms.phaseRows * filterVectors + weightPlace;
${loads.map((i) => `  var fetchedX${i} = ${stored(input)}();`).join('\n')}
${weightLoads.map((i) => `  var fetchedW${i} = ${stored(weight ?? 'f32')}();`).join('\n')}
${pixelItems
  .flatMap((i) => vectorItems.map((j) => `  var ${tiles(i, j)} = vec4<f32>();`))
  .join('\n')}
${firstLines}
  var step = 0u;
${load}
  loop {
${store}
    workgroupBarrier();
    // The next step's loads are under way while this one is computed.
    step++;
    let more = step < uniforms.steps;
    if (more) {
${load}
    }
${sums}
    if (!more) { break; }
    workgroupBarrier();
  }
${pixelItems
  .flatMap((i) =>
    vectorItems.map(
      (j) =>
        `  store(firstTilePixel + threadRow + ${i * rows}u, firstVector + threadColumn + ${j * columns}u, phase, ${tiles(i, j)});`,
    ),
  )
  .join('\n')}`;
  return defineKernel({
    name: `convolution ${shapeName(shape)} ${pixels}×${filters} ${threadPixels}×${threadFilters}`,
    mode: 'exact',
    bindings,
    uniforms: convolutionUniforms,
    threads,
    workgroupBytes: sharedBytes(variant),
    subgroup: variant.subgroup,
    declarations,
    body,
  });
}

/** @throws RangeError for what no kernel computes */
export function checkConvolutionShape({
  input,
  output,
  residual,
  side,
  wholeVectors,
}: ConvolutionShape): void {
  if (residual === 'linear' && side !== input) {
    throw new RangeError('a shortcut of another storage is not computed with the convolution');
  }
  if (!wholeVectors && (output !== 'f32' || residual !== 'none')) {
    throw new RangeError('filters that are no multiple of 4 are stored in f32, without a residual');
  }
}

/** For people: what a kernel's text depends on. */
export function shapeName(shape: ConvolutionShape): string {
  const { frames, input, weight, output, residual, activation, shuffled } = shape;
  const storages = `${frames}×${input}·${weight ?? 'filters'}→${output}`;
  return `${storages} ${residual}${activation ? ` ${activation}` : ''}${shuffled ? ' shuffled' : ''}`;
}

/** Bindings behind those of x and the weights. */
export function resultBindings(shape: ConvolutionShape, side: KernelBinding): KernelBinding[] {
  const { bias, activation, residual, output, wholeVectors } = shape;
  return [
    ...(bias ? [vectorBinding('bias', 'read', 'f32')] : []),
    ...(activation === 'prelu' ? [vectorBinding('slope', 'read', 'f32')] : []),
    ...(hasSide(residual) ? [side] : []),
    wholeVectors ? vectorBinding('y', 'write', output) : scalar('y', 'write'),
  ];
}

/** Statements: the phase of a workgroup, the first pixel of its tile, and the first four filters. */
export function placeLines(
  { pixels, filters }: Pick<ConvolutionVariant, 'pixels' | 'filters'>,
  { shuffled }: ConvolutionShape,
): string {
  return `  let filterVectors = (uniforms.filters + 3u) / 4u;
  let tilesOfPhase = uniforms.pixelTiles * uniforms.filterTiles;
  let phase = group / tilesOfPhase;
  let phaseRow = ${shuffled ? '0u' : 'phase / 2u'};
  let phaseColumn = ${shuffled ? '0u' : 'phase % 2u'};
  // ${sweep} tiles of pixels share the weights that they read.
  let place = group % tilesOfPhase;
  let block = place / (${sweep}u * uniforms.filterTiles);
  let inBlock = place % (${sweep}u * uniforms.filterTiles);
  let width = min(${sweep}u, uniforms.pixelTiles - block * ${sweep}u);
  let firstTilePixel = (block * ${sweep}u + inBlock % width) * ${pixels}u;
  let firstVector = (inBlock / width) * ${filters / 4}u;`;
}

/** Statements: where the first step is. */
export const firstLines = `  var age = 0u;
  var dy = 0u;
  var dx = 0u;
  var channel = 0u;`;

/** Statements that lead to the weights of the next step. */
interface WeightLines {
  readonly next: string;
  /** Behind the last step of a tap, where that is larger than what a tap's rows are filled up to. */
  readonly behindTap?: string;
  /** To those of the shortcut, where one follows the frames. */
  readonly toSide?: string;
}

/** Statements that go on to the next step, of so many channels: `age`, `dy`, `dx`, `channel`, and the weights. */
export function nextLines(step: number, { next, behindTap, toSide }: WeightLines): string {
  return `    channel += ${step / 4}u;
    ${next}
    if (channel >= uniforms.channels${toSide ? ' && age < uniforms.frames' : ''}) {
      ${behindTap ? `${behindTap}\n      ` : ''}channel = 0u;
      dx += 1u;
      if (dx == uniforms.kernelWidth) { dx = 0u; dy += 1u; }
      if (dy == uniforms.kernelHeight) { dy = 0u; age += 1u; }
${toSide ? `      if (age == uniforms.frames) { ${toSide} }\n` : ''}    }`;
}

const scalar = (name: string, access: KernelBinding['access']): KernelBinding => ({
  name,
  access,
  element: 'f32',
});

/** Four filters' weights of one channel and tap, from [N, C, height, width]. */
const filterFunction = `
fn filter1(number: u32, channel: u32, tap: u32) -> f32 {
  let taps = uniforms.kernelHeight * uniforms.kernelWidth;
  return weights[(min(number, uniforms.filters - 1u) * 4u * uniforms.channels + channel) * taps + tap];
}
fn filter4(vector: u32, channel: u32, tap: u32) -> vec4<f32> {
  if (channel >= 4u * uniforms.channels) { return vec4<f32>(); }
  return vec4<f32>(
    filter1(4u * vector, channel, tap), filter1(4u * vector + 1u, channel, tap),
    filter1(4u * vector + 2u, channel, tap), filter1(4u * vector + 3u, channel, tap));
}`;

/** The function `store`: adds bias and residual to four filters' sums of a pixel and stores them. */
export function storeFunction(shape: ConvolutionShape): string {
  const { residual, side, output, bias, activation, shuffled, wholeVectors } = shape;
  const filter = shuffled ? 'phase * filterVectors + vector' : 'vector';
  const pixelOf = 'pixel = (row + uniforms.sideFirst) * uniforms.outputWidth + column';
  const added = {
    none: '',
    linear: '',
    stored: `  value += ${load4('y', output, 'outputPixel * filterVectors + vector')};`,
    same: `  let ${pixelOf};
  value += ${load4('side', side, 'pixel * filterVectors + vector')};`,
    repeated: `  let ${pixelOf};
  let each = 4u * uniforms.sideChannels / uniforms.filters;
  let first = 4u * (pixel * uniforms.sideChannels + vector * each) + ((uniforms.picks >> (8u * phase)) & 255u);
  value += vec4<f32>(side1(first), side1(first + each), side1(first + 2u * each), side1(first + 3u * each));`,
  }[residual];
  const below = { relu: 'vec4<f32>()', prelu: `slope[${filter}] * value` };
  const activated = activation
    ? `  value = select(value, ${below[activation]}, value < vec4<f32>());\n`
    : '';
  const side1 = `
fn side1(index: u32) -> f32 {
  let values = ${load4('side', side, 'index / 4u')};
  return values[index % 4u];
}`;
  const stores = wholeVectors
    ? `  ${store4('y', output, 'outputPixel * filterVectors + vector', 'value')}`
    : lines(
        4,
        (q) => `  if (4u * vector + ${q}u < uniforms.filters) {
    y[outputPixel * uniforms.filters + 4u * vector + ${q}u] = value[${q}];
  }`,
      );
  return `${residual === 'repeated' ? side1 : ''}
fn store(tilePixel: u32, vector: u32, phase: u32, sum: vec4<f32>) {
  let filterVectors = (uniforms.filters + 3u) / 4u;
  if (tilePixel >= uniforms.pixels || vector >= filterVectors) { return; }
  let row = (uniforms.firstPixel + tilePixel) / uniforms.outputWidth;
  let column = (uniforms.firstPixel + tilePixel) % uniforms.outputWidth;
  let scale = uniforms.scale;
  let outputRow = row * scale + phase / 2u + uniforms.yFirst;
  let outputPixel = outputRow * uniforms.outputWidth * scale + column * scale + phase % 2u;
  var value = sum${bias ? ` + bias[${filter}]` : ''};
${added}
${activated}${stores}
}`;
}

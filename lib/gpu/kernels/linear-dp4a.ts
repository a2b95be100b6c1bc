import { memoised } from '../../graph';
import type { LinearShape, LinearVariant } from './choice';
import { type Compute, type Dispatch, fits } from './compute';
import { defineKernel, integerDots, type Kernel } from './kernel';
import { checkShape, type LinearOperands, linearCall, threadsOf } from './linear';
import {
  accumulatorLines,
  epilogueBindings,
  epilogueDeclarations,
  epilogueLines,
  epilogueUniforms,
  tileLines,
} from './linear-epilogue';
import { columnOfSlot, type Fill, shareOf, stepLoop } from './linear-fill';
import type { QuantisedRows } from './quantise';
import { lines, range } from './text';

/** A linear of a weight in blocks on rows that `quantise.ts` has rounded; `input` says nothing here. */
export type FastLinearShape = LinearShape & { readonly weight: 'q8' | 'q4' };

/** As of a linear; x is rounded. */
export type FastLinearOperands = LinearOperands & QuantisedRows;

const tiles: readonly (readonly [number, number, number, number])[] = [
  [128, 64, 8, 8],
  [64, 64, 8, 8],
  [128, 64, 8, 4],
  [64, 64, 8, 4],
  [32, 32, 4, 4],
];

/**
 * The variants that fit a device: classes of registers, and variants within a class, the best guess first; none where it
 * has no integer dot products.
 */
export function fastLinearVariants(compute: Pick<Compute, 'features' | 'limits'>): LinearVariant[] {
  if (!compute.features.has(integerDots)) return [];
  return [true, false]
    .flatMap((fused) =>
      tiles.map(([rows, columns, threadRows, threadColumns]) => {
        return { rows, columns, threadRows, threadColumns, shared: 'f32', fused } as const;
      }),
    )
    .filter((variant) =>
      fits(compute, { threads: threadsOf(variant), workgroupBytes: workgroupBytes(variant) }),
    );
}

/** A block of 32 bytes, and its scale, of each row and column. */
function workgroupBytes({ rows, columns }: LinearVariant): number {
  return rows * 36 + columns * 40;
}

/**
 * The kernel of a variant for a shape. Sums of 32 products are exact and are added over ascending k, so all variants
 * give the same bits.
 *
 * @throws RangeError for a shape that no kernel computes
 */
export const fastLinearKernel: (variant: LinearVariant, shape: FastLinearShape) => Kernel =
  memoised((variant: LinearVariant, shape: FastLinearShape) => {
    const { k, n, weight, output, epilogue, rank } = shape;
    checkShape(shape);
    const { rows, columns, threadRows, threadColumns } = variant;
    const fills = [inputFill(shape, variant), weightFill(shape, variant)];
    return defineKernel({
      name: `fast linear ${weight} →${output} ${k}×${n} ${epilogue}${rank ? ` rank ${rank}` : ''}, ${rows}×${columns} by ${threadRows}×${threadColumns}${variant.fused ? ' fused' : ''}`,
      mode: 'fast',
      bindings: [
        { name: 'x', access: 'read', element: 'vec4<u32>' },
        { name: 'xScales', access: 'read', element: 'f32' },
        { name: 'values', access: 'read', element: weight === 'q8' ? 'vec4<u32>' : 'vec2<u32>' },
        { name: 'scales', access: 'read', element: 'f32' },
        ...epilogueBindings(shape),
      ],
      uniforms: ['rows', 'xFirst', 'xScalesFirst', ...epilogueUniforms(shape)],
      threads: threadsOf(variant),
      workgroupBytes: workgroupBytes(variant),
      subgroup: variant.subgroup,
      needs: [integerDots],
      declarations: `
var<workgroup> tileX: array<vec4<u32>, ${rows * 2}>;
var<workgroup> tileW: array<vec4<u32>, ${columns * 2}>;
var<workgroup> scalesX: array<f32, ${rows}>;
var<workgroup> scalesW: array<${scaleType(variant.fused)}, ${columns}>;
${weight === 'q8' ? bytesOfBytes : bytesOfNibbles}
${dotFunction(variant.fused)}
${epilogueDeclarations(shape)}`,
      body: `
${tileLines(variant, shape)}
${body(variant, k / 32, fills)}
${epilogueLines(variant, shape)}`,
    });
  });

type TileFill = Pick<Fill, 'active' | 'setup' | 'load' | 'store'>;

const scaleType = (fused = false) => (fused ? 'vec2<f32>' : 'f32');

/** A row has two vec4 of 16 bytes per step, and a scale, which the thread with the first of them stores. */
function fill(
  name: 'X' | 'W',
  variant: LinearVariant,
  row: (slot: string) => string,
  k: number,
  source: {
    word: string;
    scales: string;
    scaleRow: (row: string) => string;
    scale: (register: string) => string;
    type: string;
  },
  convert: (register: string) => string,
): TileFill {
  const count = name === 'X' ? variant.rows : variant.columns;
  const share = shareOf(count, threadsOf(variant), 2);
  const words = range(share.quads);
  const register = (turn: number, word: number) => `in${name}${turn}_${word}`;
  const each = (text: (turn: number, word: number) => string) =>
    share.turns.flatMap((turn) => words.map((word) => text(turn, word))).join('\n');
  const perTurn = (text: (turn: number) => string) => share.turns.map(text).join('\n');
  return {
    active: share.active,
    setup: `${perTurn(
      (turn) => `
  let row${name}${turn} = ${row(share.slot(turn))};
  var scale${name}${turn} = 0.0;`,
    )}
${each((turn, word) => `  var ${register(turn, word)} = ${source.type}();`)}`,
    load: `${perTurn(
      (turn) =>
        `    scale${name}${turn} = ${source.scales}[${source.scaleRow(`row${name}${turn}`)} * ${k / 32}u + step];`,
    )}
${each(
  (turn, word) =>
    `    ${register(turn, word)} = ${source.word}[row${name}${turn} * ${k / 16}u + step * 2u + ${share.firstQuad} + ${word}u];`,
)}`,
    store: `${perTurn(
      (turn) =>
        `    if (${share.firstQuad} == 0u) { scales${name}[${share.slot(turn)}] = ${source.scale(`scale${name}${turn}`)}; }`,
    )}
${each(
  (turn, word) =>
    `    tile${name}[(${share.firstQuad} + ${word}u) * ${count}u + ${share.slot(turn)}] = ${convert(register(turn, word))};`,
)}`,
  };
}

function inputFill({ k }: FastLinearShape, variant: LinearVariant): TileFill {
  // Rows of x and of its scales start at different places.
  const row = (slot: string) => `min(tileRow + ${slot}, uniforms.rows - 1u) + uniforms.xFirst`;
  const source = {
    word: 'x',
    scales: 'xScales',
    scaleRow: (at: string) => `(${at} - uniforms.xFirst + uniforms.xScalesFirst)`,
    scale: (register: string) => register,
    type: 'vec4<u32>',
  };
  return fill('X', variant, row, k, source, (register) => register);
}

function weightFill({ k, n, weight }: FastLinearShape, variant: LinearVariant): TileFill {
  const row = (slot: string) => `min(tileColumn + ${columnOfSlot(variant, slot)}, ${n - 1}u)`;
  const source = {
    word: 'values',
    scales: 'scales',
    scaleRow: (at: string) => at,
    scale: (register: string) => `scaleOf(${register})`,
    type: weight === 'q8' ? 'vec4<u32>' : 'vec2<u32>',
  };
  return fill('W', variant, row, k, source, (register) => `levels(${register})`);
}

function body(variant: LinearVariant, blocks: number, fills: readonly TileFill[]): string {
  const { rows, columns, threadRows, threadColumns } = variant;
  const across = columns / threadColumns;
  const slot = (j: number) => `threadColumn + ${j * across}u`;
  const sums = `${lines(
    threadColumns,
    (j) => `    let w${j} = tileW[${slot(j)}]; let v${j} = tileW[${columns}u + ${slot(j)}];
    let s${j} = scalesW[${slot(j)}];`,
  )}
${lines(threadRows, (i) => {
  const at = `threadRow * ${threadRows}u + ${i}u`;
  const sums = range(threadColumns).map(
    (j) => `c${i}_${j} = fma(product(a, b, w${j}, v${j}, s${j}), s, c${i}_${j});`,
  );
  return `      { let a = tileX[${at}]; let b = tileX[${rows}u + ${at}]; let s = scalesX[${at}];
        ${sums.join('\n        ')} }`;
})}`;
  return `
${accumulatorLines(variant)}
${stepLoop(fills, blocks, sums)}`;
}

/**
 * A small integer added to 1.5·2²³'s bits is its fraction: no conversion is needed. The constant is the first addend, as
 * an instruction that adds a dot product to a number takes it for nothing. A multiply-add that rounds once takes it away
 * while it scales: with a scale of 22 bits the result is that of a difference and a product.
 */
const dotFunction = (fused = false) => `
fn product(a: vec4<u32>, b: vec4<u32>, c: vec4<u32>, d: vec4<u32>, scale: ${scaleType(fused)}) -> f32 {
  let sum = 0x4B400000 + dot4I8Packed(a.x, c.x) + dot4I8Packed(a.y, c.y) + dot4I8Packed(a.z, c.z) + dot4I8Packed(a.w, c.w)
    + dot4I8Packed(b.x, d.x) + dot4I8Packed(b.y, d.y) + dot4I8Packed(b.z, d.z) + dot4I8Packed(b.w, d.w);
  return ${fused ? 'fma(bitcast<f32>(sum), scale.x, scale.y)' : '(bitcast<f32>(sum) - 12582912.0) * scale'};
}
fn scaleOf(scale: f32) -> ${scaleType(fused)} {
  let rounded = bitcast<f32>((bitcast<u32>(scale) + 2u) & 0xFFFFFFFCu);
  return ${fused ? 'vec2<f32>(rounded, -12582912.0 * rounded)' : 'rounded'};
}`;

/** From bytes around 128 to signed ones. */
const bytesOfBytes = `
fn levels(words: vec4<u32>) -> vec4<u32> { return words ^ vec4<u32>(0x80808080u); }`;

/** From nibbles around 8 to signed bytes: in each byte (v + 0x78) ^ 0x80 is v − 8. */
const bytesOfNibbles = `
fn levels(words: vec2<u32>) -> vec4<u32> {
  let h = vec4<u32>(words.x & 0xffffu, words.x >> 16u, words.y & 0xffffu, words.y >> 16u);
  let bytes = (h & vec4<u32>(0xfu)) | ((h & vec4<u32>(0xf0u)) << vec4<u32>(4u)) |
    ((h & vec4<u32>(0xf00u)) << vec4<u32>(8u)) | ((h & vec4<u32>(0xf000u)) << vec4<u32>(12u));
  return (bytes + vec4<u32>(0x78787878u)) ^ vec4<u32>(0x80808080u);
}`;

/** A call of {@link fastLinearKernel}. */
export function fastLinearDispatch(
  variant: LinearVariant,
  shape: FastLinearShape,
  operands: FastLinearOperands,
): Dispatch {
  const call = linearCall(fastLinearKernel(variant, shape), variant, shape, operands);
  const { xScales } = operands;
  return {
    ...call,
    operands: { ...call.operands, xScales: xScales.operand },
    uniforms: { ...call.uniforms, xScalesFirst: xScales.firstRow },
  };
}

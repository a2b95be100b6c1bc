import type { LinearShape, LinearVariant } from './choice';
import type { KernelBinding, Storage } from './kernel';
import { range, unpacked } from './text';

/*
 * How a tile of x, or of the weight, gets into workgroup memory. A tile is an array of vec4 of four consecutive k,
 * [k/4][slot]: rows are contiguous along k, so whole vec4 are stored and nothing is transposed. A thread takes its
 * words of the next step into registers before it computes this one.
 */

/**
 * The loop over k: both tiles are stored, the words of the next step are loaded, and this step is computed.
 *
 * @param sums statements that add a step to the sums
 */
export function stepLoop(
  fills: readonly Pick<Fill, 'active' | 'setup' | 'load' | 'store'>[],
  steps: number,
  sums: string,
): string {
  const of = (active: string | null, text: string) =>
    active === null ? text : `    if (${active}) {\n${text}\n    }`;
  const loads = fills.map(({ active, load }) => of(active, load)).join('\n');
  return `${fills.map(({ setup }) => setup).join('\n')}
  var step = 0u;
${loads}
  loop {
${fills.map(({ active, store }) => of(active, store)).join('\n')}
    workgroupBarrier();
    step++;
    if (step < ${steps}u) {
${loads}
    }
${sums}
    if (step == ${steps}u) { break; }
    workgroupBarrier();
  }`;
}

/** The pieces of text that fill a tile. */
export interface Fill {
  readonly bindings: readonly KernelBinding[];
  readonly declarations: string;
  /** Which threads load and store; null for all. */
  readonly active: string | null;
  /** Statements before the loop. */
  readonly setup: string;
  /** Statements that load the words of `step` into registers. */
  readonly load: string;
  /** Statements that store the registers, converted. */
  readonly store: string;
}

/** What a thread fills of a tile: `quads` vec4 of each of `turns` rows, `apart` rows from each other. */
export interface Share {
  readonly quads: number;
  readonly turns: readonly number[];
  /** The slot in the tile of a turn's row, and the first of its quads. */
  slot(turn: number): string;
  readonly firstQuad: string;
  /** Which threads have a share, where there are more of them than quads; null for all. */
  readonly active: string | null;
}

/** Quads of a row of a tile: 16 elements of k. */
const quadsPerRow = 4;

/**
 * What a thread fills of a tile of `rows` of `quadsPerRow` vec4.
 *
 * @throws RangeError where the threads cannot share it evenly
 */
export function shareOf(rows: number, threads: number, quadsPerRow: number): Share {
  const quads = rows * quadsPerRow;
  const active = quads < threads ? `thread < ${quads}u` : null;
  const perThread = Math.max(1, quads / threads);
  if (!Number.isInteger(perThread)) throw new RangeError(`${threads} threads for ${rows} rows`);
  if (perThread >= quadsPerRow) {
    return {
      quads: quadsPerRow,
      turns: Array.from({ length: perThread / quadsPerRow }, (_, turn) => turn),
      slot: (turn) => `(thread + ${turn * threads}u)`,
      firstQuad: '0u',
      active,
    };
  }
  return {
    active,
    quads: perThread,
    turns: [0],
    slot: () => `(thread % ${rows}u)`,
    firstQuad: `(thread / ${rows}u * ${perThread}u)`,
  };
}

const components = ['x', 'y', 'z', 'w'];
/** Component `i` of a word vector of `count`, or the scalar itself. */
const component = (name: string, i: number, count: number) =>
  count === 1 ? name : `${name}.${components[i]}`;
const wordType = (count: number) =>
  (count === 1 ? 'u32' : `vec${count}<u32>`) as 'u32' | 'vec2<u32>' | 'vec4<u32>';

/** Loads of `quads` vec4 from rows of whole elements. */
function floatFill(
  name: string,
  storage: Storage | 'bf16',
  k: number,
  share: Share,
  row: (turn: number) => string,
  tile: { readonly name: string; readonly rows: number; readonly vector: string },
): Fill {
  // Two quads of 16 bits are 16 bytes: one load where rows are aligned to them.
  const wide = storage !== 'f32' && share.quads % 2 === 0 && k % 8 === 0;
  const perWord = wide ? 2 : 1;
  const element = storage === 'f32' ? 'vec4<f32>' : wide ? 'vec4<u32>' : 'vec2<u32>';
  const perRow = k / 4 / perWord;
  const words = range(share.quads / perWord);
  const register = (turn: number, word: number) => `${name}${turn}_${word}`;
  const each = (text: (turn: number, word: number) => string) =>
    share.turns.flatMap((turn) => words.map((word) => text(turn, word))).join('\n');
  const wordsPerStep = quadsPerRow / perWord;
  const partial = (k / 4) % quadsPerRow !== 0;
  const place = (word: number) => `${name}Word + step * ${wordsPerStep}u + ${word}u`;
  const value = (turn: number, quad: number) => {
    const from = register(turn, Math.floor(quad / perWord));
    return unpacked(wide ? `${from}.${quad % 2 ? 'zw' : 'xy'}` : from, storage);
  };
  return {
    active: share.active,
    bindings: [{ name, access: 'read', element }],
    declarations: '',
    setup: [
      `  let ${name}Word = ${share.firstQuad} / ${perWord}u;`,
      ...share.turns.map((turn) => `  let ${name}Row${turn} = (${row(turn)}) * ${perRow}u;`),
      each((turn, word) => `  var ${register(turn, word)} = ${element}();`),
    ].join('\n'),
    load: each((turn, word) => {
      const index = `${name}Row${turn} + ${place(word)}`;
      return partial
        ? `    if (${place(word)} < ${perRow}u) { ${register(turn, word)} = ${name}[${index}]; } else { ${register(turn, word)} = ${element}(); }`
        : `    ${register(turn, word)} = ${name}[${index}];`;
    }),
    store: share.turns
      .flatMap((turn) =>
        range(share.quads).map(
          (quad) =>
            `    ${tile.name}[(${share.firstQuad} + ${quad}u) * ${tile.rows}u + ${share.slot(turn)}] = ${tile.vector}(${value(turn, quad)});`,
        ),
      )
      .join('\n'),
  };
}

/** The tile of x: a row's slot is its place in the tile. */
export function inputFill(
  { k, input }: LinearShape,
  rows: number,
  threads: number,
  vector: string,
): Fill {
  const share = shareOf(rows, threads, quadsPerRow);
  const row = (turn: number) =>
    `uniforms.xFirst + min(tileRow + ${share.slot(turn)}, uniforms.rows - 1u)`;
  return floatFill('x', input, k, share, row, { name: 'tileX', rows, vector });
}

/**
 * The column of the tile in a slot. A thread's columns lie side by side in the result, its slots as far from each
 * other as there are threads across: lanes then read neighbouring slots.
 */
export function columnOfSlot(
  { columns, threadColumns }: Pick<LinearVariant, 'columns' | 'threadColumns'>,
  slot: string,
): string {
  const across = columns / threadColumns;
  return `(${slot} % ${across}u * 4u + ${slot} / ${across}u % 4u + ${slot} / ${4 * across}u * ${4 * across}u)`;
}

/** The tile of the weight; for the slots see {@link columnOfSlot}. */
export function weightFill(
  shape: LinearShape,
  variant: LinearVariant,
  threads: number,
  vector: string,
): Fill {
  const { k, n, weight } = shape;
  const { columns } = variant;
  const share = shareOf(columns, threads, quadsPerRow);
  const row = (turn: number) =>
    `min(tileColumn + ${columnOfSlot(variant, share.slot(turn))}, ${n - 1}u)`;
  const tile = { name: 'tileW', rows: columns, vector };
  if (weight === 'f32' || weight === 'bf16') {
    return floatFill('weight', weight, k, share, row, tile);
  }

  const { words, ...loads } = blockLoads(shape, share, row);
  const level = (turn: number, quad: number) => {
    if (weight === 'q8') return component(`values${turn}`, quad, words);
    const word = component(`values${turn}`, Math.floor(quad / 2), words);
    if (share.quads === 1) return `${word} >> (${share.firstQuad} % 2u * 16u)`;
    return quad % 2 ? `${word} >> 16u` : word;
  };
  return {
    ...loads,
    store: share.turns
      .flatMap((turn) =>
        range(share.quads).map(
          (quad) =>
            `    tileW[(${share.firstQuad} + ${quad}u) * ${columns}u + ${share.slot(turn)}] = ${vector}(levels(${level(turn, quad)}) * scale${turn});`,
        ),
      )
      .join('\n'),
  };
}

/** Words and scales of blocks in registers; a turn has its row of the weight. */
function blockLoads(
  { k, weight }: LinearShape,
  { active, quads, turns, firstQuad }: Share,
  row: (turn: number) => string,
): Omit<Fill, 'store'> & { readonly words: number } {
  // A quad is 4 bytes of q8 and 2 of q4; a q4 thread with one quad takes a half of a word.
  const words = weight === 'q8' ? quads : Math.max(1, quads / 2);
  const wordsPerStep = weight === 'q8' ? 4 : 2;
  const firstWord = weight === 'q8' ? firstQuad : `(${firstQuad} / 2u)`;
  return {
    active,
    words,
    bindings: [
      { name: 'values', access: 'read', element: wordType(words) },
      { name: 'scales', access: 'read', element: 'f32' },
    ],
    declarations: weight === 'q8' ? levelsOfBytes : levelsOfNibbles,
    setup: turns
      .map(
        (turn) => `
  let column${turn} = ${row(turn)};
  let valuesRow${turn} = (column${turn} * ${(k / 16) * wordsPerStep}u + ${firstWord}) / ${words}u;
  var values${turn} = ${wordType(words)}();
  var scale${turn} = 0.0;`,
      )
      .join('\n'),
    load: turns
      .map(
        (turn) => `
    values${turn} = values[valuesRow${turn} + step * ${wordsPerStep / words}u];
    scale${turn} = scales[column${turn} * ${k / 32}u + step / 2u];`,
      )
      .join('\n'),
  };
}

/*
 * A small integer in the fraction of 2²³ is 2²³ plus that integer: no conversion is needed. It stays where it lies in
 * the word, 16 or 256 times as large, since a shift costs a GPU as much as the product that undoes this.
 */
export const levelsOfBytes = `
fn levels(word: u32) -> vec4<f32> {
  let upper = word >> 16u;
  let bytes = vec4<u32>(word, word, upper, upper) & vec4<u32>(0xFFu, 0xFF00u, 0xFFu, 0xFF00u);
  let numbers = bitcast<vec4<f32>>(bytes | vec4<u32>(0x4B000000u));
  return (numbers - vec4<f32>(8388736.0, 8421376.0, 8388736.0, 8421376.0)) * vec4<f32>(1.0, 0.00390625, 1.0, 0.00390625);
}`;
export const levelsOfNibbles = `
fn levels(word: u32) -> vec4<f32> {
  let nibbles = vec4<u32>(word) & vec4<u32>(0xFu, 0xF0u, 0xF00u, 0xF000u);
  let numbers = bitcast<vec4<f32>>(nibbles | vec4<u32>(0x4B000000u));
  return (numbers - vec4<f32>(8388616.0, 8388736.0, 8390656.0, 8421376.0)) * vec4<f32>(1.0, 0.0625, 0.00390625, 0.000244140625);
}`;

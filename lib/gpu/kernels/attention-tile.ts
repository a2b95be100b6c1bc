import type { AttentionVariant } from './choice';
import type { KernelBinding, Storage } from './kernel';
import { halfFunctions, lines, range } from './text';

/*
 * How a workgroup of an attention kernel is divided, and pieces of text for it: 16 lanes share each row of
 * queries; a lane has neighbouring keys of a tile, and every 16th group of four channels of the results.
 */

/** Channels of the largest head: its results lie in registers. */
export const largestHead = 128;

/** Threads that share a row. */
export const lanes = 16;

/** Keys, or channels, that lie in workgroup memory at a time. */
export const slice = 16;

/** Bytes of the weights of a tile that are stored at once: with a slice of values they take 16 KiB. */
const mostWeights = 8192;

/** How a workgroup is divided. */
export interface Geometry {
  readonly threads: number;
  /** Rows and keys of a thread. */
  readonly rows: number;
  readonly keys: number;
  /** Groups of four channels of a thread. */
  readonly columns: number;
  /** `vec4`s of a slice of Q [4][queries], of the lanes' maxima and of the weights [keys or 16][queries/4]. */
  readonly left: number;
  /** Whether the weights of a tile are stored at once. A thread then needs no registers for them any more. */
  readonly whole: boolean;
  /** `vec4`s of a slice of K [4][keys]. */
  readonly keySlice: number;
  /** `vec4`s of a slice of V [16][columns·16]. */
  readonly valueSlice: number;
}

export function geometryOf(
  { queries, keys, threadRows }: AttentionVariant,
  headSize: number,
): Geometry {
  const rows = threadRows ?? (queries >= 64 ? 8 : 4);
  const columns = Math.ceil(headSize / 64);
  const whole = 4 * queries * keys <= mostWeights;
  return {
    threads: (queries / rows) * lanes,
    rows,
    keys: keys / lanes,
    columns,
    left: whole ? Math.max(4 * queries, (queries * keys) / 4) : 4 * queries,
    whole,
    keySlice: 4 * keys,
    valueSlice: slice * lanes * columns,
  };
}

/** An array in workgroup memory. Numbers lie in it as f32, as f16, or as the bits of f32 among other integers. */
export interface Area {
  readonly name: string;
  readonly element: 'vec4<f32>' | 'vec4<f16>' | 'vec4<u32>';
  readonly count: number;
}

/** Four numbers of an area as `vec4<f32>`. */
export function read({ name, element }: Area, index: string): string {
  const value = `${name}[${index}]`;
  if (element === 'vec4<f32>') return value;
  return element === 'vec4<f16>' ? `vec4<f32>(${value})` : `bitcast<vec4<f32>>(${value})`;
}

/** A statement that puts a `vec4<f32>` into an area. */
export function write({ name, element }: Area, index: string, value: string): string {
  const conversion = element === 'vec4<u32>' ? 'bitcast<vec4<u32>>' : element;
  return `${name}[${index}] = ${element === 'vec4<f32>' ? value : `${conversion}(${value})`};`;
}

/** What a kernel with these areas says of its workgroup. */
export function workgroupOf(areas: readonly Area[]) {
  return {
    workgroupBytes: areas.reduce(
      (bytes, { element, count }) => bytes + count * (element === 'vec4<f16>' ? 8 : 16),
      0,
    ),
    declarations: `${areas
      .map(({ name, element, count }) => `var<workgroup> ${name}: array<${element}, ${count}>;`)
      .join('\n')}
${halfFunctions}`,
  };
}

/** What of the rows a group, a part of it and a lane have. */
export function divisionText(queries: number): string {
  return `
  let queryTiles = (uniforms.rows + ${queries - 1}u) / ${queries}u;
  let head = group / queryTiles;
  let firstQuery = group % queryTiles * ${queries}u;
  let lane = thread % ${lanes}u;
  let part = thread / ${lanes}u;`;
}

/** A buffer that is read eight elements at a time. */
export function rowsBinding(name: string, storage: Storage): KernelBinding {
  return { name, access: 'read', element: storage === 'f32' ? 'vec4<f32>' : 'vec4<u32>' };
}

/** Puts eight elements of a buffer into two slots of an area; `index` counts groups of eight. */
export function load8(
  name: string,
  storage: Storage,
  index: string,
  area: Area,
  slots: readonly [string, string],
): string {
  if (storage === 'f32') {
    return `let place = (${index}) * 2u;
        ${write(area, slots[0], `${name}[place]`)}
        ${write(area, slots[1], `${name}[place + 1u]`)}`;
  }
  // Firefox's compiler refuses a bitcast of two words to four f16.
  return `let words = ${name}[${index}];
        ${write(area, slots[0], 'unpackHalf4(words.xy)')}
        ${write(area, slots[1], 'unpackHalf4(words.zw)')}`;
}

/** Rows of eight elements that pass into two slots of an area, a unit for each. */
export interface Fill {
  readonly name: string;
  readonly storage: Storage;
  readonly area: Area;
  readonly count: number;
  /** Text that makes of `unit` what the others use. */
  readonly setup: string;
  /** Of the element, in groups of eight. */
  readonly index: string;
  readonly slots: readonly [string, string];
  /** What units must fulfil, the others of which are zeros. */
  readonly inside?: string;
}

/** Fills with the registers `ahead0`, `ahead1` … that they are loaded into ahead, in order. */
function withRegisters(fills: readonly Fill[], threads: number) {
  let first = 0;
  return fills.map((fill) => {
    const each = fill.storage === 'f32' ? 2 : 1;
    const start = first;
    first += Math.ceil(fill.count / threads) * each;
    const names = (turn: number) => range(each).map((half) => `ahead${start + each * turn + half}`);
    return { fill, names, end: first };
  });
}

/** Registers, of four words each, that fills take when they are loaded ahead. */
export function fetchedVectors(fills: readonly Fill[], threads: number): number {
  return withRegisters(fills, threads).at(-1)?.end ?? 0;
}

/** Loads fills into registers. */
export function fetch(fills: readonly Fill[], threads: number): string {
  return withRegisters(fills, threads)
    .map(({ fill: { name, count, setup, index }, names }) =>
      eachUnit(count, threads, (turn) => {
        const [low, high] = names(turn);
        return high
          ? `${setup}
        let place = (${index}) * 2u;
        ${low} = bitcast<vec4<u32>>(${name}[place]);
        ${high} = bitcast<vec4<u32>>(${name}[place + 1u]);`
          : `${setup}
        ${low} = ${name}[${index}];`;
      }),
    )
    .join('\n');
}

/** Stores what {@link fetch} has loaded. */
export function storeFetched(fills: readonly Fill[], threads: number): string {
  return withRegisters(fills, threads)
    .map(({ fill, names }) =>
      eachUnit(fill.count, threads, (turn) => {
        const [low, high] = names(turn);
        const values = high
          ? [`bitcast<vec4<f32>>(${low})`, `bitcast<vec4<f32>>(${high})`]
          : [`unpackHalf4(${low}.xy)`, `unpackHalf4(${low}.zw)`];
        const stores = fill.slots.map((slot, i) => write(fill.area, slot, values[i] ?? ''));
        return `${fill.setup}
        ${guarded(fill, stores.join('\n        '))}`;
      }),
    )
    .join('\n');
}

/** Loads and stores fills. */
export function fillNow(fills: readonly Fill[], threads: number): string {
  return fills
    .map((fill) => {
      const { name, storage, area, count, setup, index, slots } = fill;
      const text = guarded(fill, load8(name, storage, index, area, slots));
      return eachUnit(count, threads, `${setup}\n        ${text}`);
    })
    .join('\n');
}

function guarded({ area, slots, inside }: Fill, text: string): string {
  if (!inside) return text;
  const zero = `${area.element}()`;
  return `if (${inside}) {
        ${text}
        } else {
          ${slots.map((slot) => `${area.name}[${slot}] = ${zero};`).join('\n          ')}
        }`;
}

/** Where a row of a head begins, in groups of eight elements. */
export function place(name: string, row: string): string {
  return `head * uniforms.${name}Head + (uniforms.${name}First + ${row}) * uniforms.${name}Row`;
}

/** Gives `count` units of work to the threads; the text has `unit`. */
export function eachUnit(
  count: number,
  threads: number,
  text: string | ((turn: number) => string),
): string {
  return lines(Math.ceil(count / threads), (turn) => {
    const partial = (turn + 1) * threads > count;
    return `      ${partial ? `if (thread < ${count - turn * threads}u) ` : ''}{
        let unit = thread + ${turn * threads}u;${typeof text === 'string' ? text : text(turn)}
      }`;
  });
}

/** A `vec4<f32>` of four expressions. */
export const four = (of: (i: number) => string) => `vec4<f32>(${range(4).map(of).join(', ')})`;

/** Component `i` of `name0`, `name1` …: vectors of four rows. */
export const component = (name: string, i: number) => `${name}${i >> 2}.${'xyzw'[i & 3]}`;

import type { AttentionVariant } from './attention';
import type { KernelBinding, Storage } from './kernel';

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

export function geometryOf({ queries, keys }: AttentionVariant, headSize: number): Geometry {
  const rows = queries >= 64 ? 8 : 4;
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

/** Four elements of an area as `vec4<f32>`. */
export function read({ name, element }: Area, index: string): string {
  if (element === 'vec4<f32>') return `${name}[${index}]`;
  return element === 'vec4<f16>'
    ? `vec4<f32>(${name}[${index}])`
    : `bitcast<vec4<f32>>(${name}[${index}])`;
}

/** A statement that puts a `vec4<f32>` into an area. */
export function write({ name, element }: Area, index: string, value: string): string {
  if (element === 'vec4<f32>') return `${name}[${index}] = ${value};`;
  return element === 'vec4<f16>'
    ? `${name}[${index}] = vec4<f16>(${value});`
    : `${name}[${index}] = bitcast<vec4<u32>>(${value});`;
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

/** Where a row of a head begins, in groups of eight elements. */
export function place(name: string, row: string): string {
  return `head * uniforms.${name}Head + (uniforms.${name}First + ${row}) * uniforms.${name}Row`;
}

/** Gives `count` units of work to the threads; the text has `unit`. */
export function eachUnit(count: number, threads: number, text: string): string {
  return lines(Math.ceil(count / threads), (turn) => {
    const partial = (turn + 1) * threads > count;
    return `      ${partial ? `if (thread < ${count - turn * threads}u) ` : ''}{
        let unit = thread + ${turn * threads}u;${text}
      }`;
  });
}

export const upTo = (count: number) => Array.from({ length: count }, (_, index) => index);

export const lines = (count: number, line: (index: number) => string) =>
  upTo(count).map(line).join('\n');

/** A `vec4<f32>` of four expressions. */
export const four = (of: (i: number) => string) => `vec4<f32>(${upTo(4).map(of).join(', ')})`;

/** Component `i` of `name0`, `name1` …: vectors of four rows. */
export const component = (name: string, i: number) => `${name}${i >> 2}.${'xyzw'[i & 3]}`;

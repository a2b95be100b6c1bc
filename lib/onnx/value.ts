import type { GraphBuilder } from './graph';

/** Element types that the graphs of this project use. */
export type ElementType = 'float32' | 'float16' | 'int32' | 'int64' | 'uint8' | 'bool';

/** The CPU array that holds a tensor's elements; f16 as its 16 bits. */
export interface ElementArrays {
  float32: Float32Array;
  float16: Uint16Array;
  int32: Int32Array;
  int64: BigInt64Array;
  uint8: Uint8Array;
  bool: Uint8Array;
}

/** A size that is known now, or a name for one that is known when the graph runs. */
export type Dim = number | string;

/** What a float operator takes. */
export type FloatType = 'float32' | 'float16';

/** A typed edge of a graph under construction. */
export class Value<T extends ElementType = ElementType> {
  constructor(
    readonly graph: GraphBuilder,
    readonly name: string,
    readonly dtype: T,
    readonly dims: readonly Dim[],
  ) {}

  get rank(): number {
    return this.dims.length;
  }

  toString(): string {
    return `${this.name}: ${this.dtype}[${this.dims.join(', ')}]`;
  }
}

/** Throws the TypeError of operator `op`. */
export function reject(op: string, sentence: string): never {
  throw new TypeError(`${op}: ${sentence}`);
}

/** Dimension `axis` of a value; negative axes count from the end. */
export function dim(op: string, value: Value, axis: number): Dim {
  const size = value.dims[normaliseAxis(op, value.rank, axis)];
  return size ?? reject(op, `${value} has no axis ${axis}`);
}

/** `axis` as an index from 0. */
export function normaliseAxis(op: string, rank: number, axis: number): number {
  const index = axis < 0 ? axis + rank : axis;
  if (!Number.isInteger(axis) || index < 0 || index >= rank) {
    reject(op, `axis ${axis} is outside a tensor of rank ${rank}`);
  }
  return index;
}

/** @throws TypeError where the value has another number of axes */
export function requireRank(op: string, value: Value, ...ranks: number[]): void {
  if (!ranks.includes(value.rank)) reject(op, `${value} must have rank ${ranks.join(' or ')}`);
}

/** @throws TypeError where its elements are of another type */
export function requireDtype(op: string, value: Value, ...dtypes: ElementType[]): void {
  if (!dtypes.includes(value.dtype)) reject(op, `${value} must be ${dtypes.join(' or ')}`);
}

/** @throws TypeError where the values differ in their element type */
export function requireSameDtype(op: string, first: Value, ...others: Value[]): void {
  for (const other of others) {
    if (other.dtype !== first.dtype) reject(op, `${other} must be ${first.dtype} like ${first}`);
  }
}

/** Two sizes that must agree: equal, or one of them a name whose size is known when the graph runs. */
export function requireSameDim(op: string, what: string, a: Dim, b: Dim): Dim {
  if (a === b) return a;
  if (typeof a === 'number' && typeof b === 'number') reject(op, `${what} differ: ${a} and ${b}`);
  return typeof a === 'number' ? a : b;
}

/** NumPy broadcasting of two shapes. */
export function broadcastDims(op: string, a: readonly Dim[], b: readonly Dim[]): Dim[] {
  const rank = Math.max(a.length, b.length);
  return Array.from({ length: rank }, (_, axis) => {
    const left = a[axis - rank + a.length] ?? 1;
    const right = b[axis - rank + b.length] ?? 1;
    if (left === 1) return right;
    if (right === 1) return left;
    if (left !== right && (typeof left === 'string' || typeof right === 'string')) {
      reject(op, `cannot tell whether ${left} and ${right} broadcast`);
    }
    return requireSameDim(op, `dimension ${axis}`, left, right);
  });
}

/** Sum of two sizes; symbolic where either is. */
export function addDims(a: Dim, b: Dim): Dim {
  return typeof a === 'number' && typeof b === 'number' ? a + b : `${a}+${b}`;
}

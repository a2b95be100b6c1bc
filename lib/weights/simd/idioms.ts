import {
  type Code,
  f32,
  f32x4,
  f64x2,
  i8x16,
  i16x8,
  i32,
  type Local,
  type ValueType,
  v128,
} from './assembler';

/** Where the sums lie: Σ error², Σ w². */
export const sumsAddress = 0;

/** Parameters of a kernel: addresses of source, values and scales; number of blocks. */
export const block = ['i32', 'i32', 'i32', 'i32'] as const;
type Five = readonly [Local, Local, Local, Local, Local];

export function vectors(declare: (type: ValueType) => Local): Five {
  return [declare('v128'), declare('v128'), declare('v128'), declare('v128'), declare('v128')];
}

export function floats(value: number): Code {
  return f32x4.splat(f32.const(value));
}

export function clear(vector: Local): Code {
  return vector.set(floats(0));
}

export function advance(pointer: Local, step: number): Code {
  return pointer.set(i32.add(pointer.get, i32.const(step)));
}

/** Eight values combined in pairs: a chain would wait for each instruction before the next. */
export function tree(combine: (a: Code, b: Code) => Code, values: readonly Code[]): Code {
  const [first = [], ...rest] = values;
  if (rest.length === 0) return first;
  const half = values.length / 2;
  return combine(tree(combine, values.slice(0, half)), tree(combine, values.slice(half)));
}

/** All four lanes combined, in every lane. */
export function acrossLanes(vector: Local, combine: (a: Code, b: Code) => Code): Code {
  return [
    ...vector.set(combine(vector.get, v128.shuffle32(vector, 2, 3, 0, 1))),
    ...combine(vector.get, v128.shuffle32(vector, 1, 0, 3, 2)),
  ];
}

/** The low bytes of 16 lanes of 32 bits: of the first or the second half of a block. */
export function bytesOf(lanes: readonly Local[], half: number): Code {
  const [a, b, c, d] = lanes.slice(4 * half).map((lane) => lane.get) as [Code, Code, Code, Code];
  return i8x16.narrow(i16x8.narrow(a, b), i16x8.narrow(c, d));
}

/** 32 bytes of 0 … 15 as 16 bytes, the even element in the low nibble. */
export function nibblesOf(first: Code, second: Code, a: Local, b: Local): Code {
  const pairs = (bytes: Local) =>
    v128.and(
      v128.or(bytes.get, i16x8.shiftRight(bytes.get, i32.const(4))),
      i16x8.splat(i32.const(255)),
    );
  return [...a.set(first), ...b.set(second), ...i8x16.narrow(pairs(a), pairs(b))];
}

/** Adds a block's sums, which are in units of its scale. */
export function addSums(unit: Local, error: Local, norm: Local): Code {
  return [
    ...error.set(acrossLanes(error, f32x4.add)),
    ...norm.set(acrossLanes(norm, f32x4.add)),
    ...error.set(v128.interleave32(error.get, norm.get)),
    ...addToSums(f64x2.fromF32(error.get), f64x2.fromF32(unit.get)),
  ];
}

/** Adds two sums in units of a scale to those in memory. */
export function addToSums(sums: Code, scale: Code): Code {
  const at = i32.const(sumsAddress);
  return v128.store(at, 0, f64x2.add(v128.load(at, 0), f64x2.mul(f64x2.mul(sums, scale), scale)));
}

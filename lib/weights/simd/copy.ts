import {
  type Code,
  defineFunction,
  f32,
  f32x4,
  f64x2,
  i8x16,
  i16x8,
  i32,
  i32x4,
  type Local,
  repeatWhile,
  select,
  v128,
} from './assembler';
import {
  acrossLanes,
  addToSums,
  advance,
  block,
  clear,
  floats,
  nibblesOf,
  vectors,
} from './idioms';

/** As {@link block}, and a factor. */
const copy = [...block, 'f32'] as const;

/** GGML's Q8_0 → 8 bits as they are; the last parameter multiplies the scales. */
export const copy8 = defineFunction('copy8', copy, (args, declare) => {
  const [source, values, scales, count, factor] = args;
  const scale = declare('f32');
  const [bytes, sum, words] = vectors(declare);
  return repeatWhile(count.get, [
    ...scale.set(scaleOf(source, factor)),
    ...f32.store(scales.get, scale.get),
    ...clear(sum),
    ...[0, 16].flatMap((at) => [
      ...bytes.set(v128.load(source.get, 2 + at)),
      ...v128.store(values.get, at, v128.xor(bytes.get, i8x16.splat(i32.const(-128)))),
      ...addSquares(sum, bytes, words),
    ]),
    ...addNorm(sum, scale),
    ...advance(source, 34),
    ...advance(values, 32),
    ...advance(scales, 4),
    ...advance(count, -1),
  ]);
});

/** GGML's Q4_0 → 4 bits as they are, in our order; the last parameter multiplies the scales. */
export const copy4 = defineFunction('copy4', copy, (args, declare) => {
  const [source, values, scales, count, factor] = args;
  const scale = declare('f32');
  const [low, high, sum, bytes, words] = vectors(declare);
  return repeatWhile(count.get, [
    ...scale.set(scaleOf(source, factor)),
    ...f32.store(scales.get, scale.get),
    ...clear(sum),
    ...bytes.set(v128.load(source.get, 2)),
    ...low.set(v128.and(bytes.get, i8x16.splat(i32.const(15)))),
    ...high.set(i8x16.shiftRight(bytes.get, i32.const(4))),
    ...[low, high].flatMap((nibbles) => [
      ...bytes.set(i8x16.sub(nibbles.get, i8x16.splat(i32.const(8)))),
      ...addSquares(sum, bytes, words),
    ]),
    ...v128.store(values.get, 0, nibblesOf(low.get, high.get, bytes, words)),
    ...addNorm(sum, scale),
    ...advance(source, 18),
    ...advance(values, 16),
    ...advance(scales, 4),
    ...advance(count, -1),
  ]);
});

function addSquares(sum: Local, bytes: Local, words: Local): Code {
  return [i16x8.lowBytes, i16x8.highBytes].flatMap((widen) => [
    ...words.set(widen(bytes.get)),
    ...sum.set(i32x4.add(sum.get, i32x4.dot(words.get, words.get))),
  ]);
}

/** Adds Σ q²·scale² to the second sum; a copy has no error. */
function addNorm(sum: Local, scale: Local): Code {
  return [
    ...sum.set(acrossLanes(sum, i32x4.add)),
    ...addToSums(
      f64x2.fromI32(v128.interleave32(floats(0), sum.get)),
      f64x2.fromF32(f32x4.splat(scale.get)),
    ),
  ];
}

/** The f16 at the start of a GGML block as f32, times the factor; infinities become NaN. */
function scaleOf(source: Local, factor: Local): Code {
  const half = i32.load16(source.get, 0);
  const magnitude = i32.shiftLeft(i32.and(half, i32.const(0x7fff)), i32.const(13));
  const sign = i32.shiftLeft(i32.and(half, i32.const(0x8000)), i32.const(16));
  // Exponents of f16 and f32 differ by 112; the product is exact for subnormal halves as well.
  const value = f32.mul(f32.fromBits(i32.or(magnitude, sign)), f32.const(2 ** 112));
  const special = i32.equal(i32.and(half, i32.const(0x7c00)), i32.const(0x7c00));
  return f32.mul(select(f32.const(Number.NaN), value, special), factor.get);
}

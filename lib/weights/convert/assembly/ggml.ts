import { half } from './floats';
import { floats, source } from './memory';

/*
 * GGML's types at `source` as f32 at `floats`; layouts as in ggml-quants.c (`dequantize_row_q4_0`, …).
 * A product of scales and integers has at most 24 bits and is exact in f32, so an element is rounded
 * once: when its offset is subtracted.
 */

/** Q4_0, 18 bytes: f16 d, 16 bytes of nibbles (elements j and j + 16); w = d·(q − 8). */
export function decodeQ4_0(count: i32): void {
  const none = f32x4.splat(0);
  let at = source;
  for (let to = floats, end = floats + 4 * count; to < end; at += 18, to += 128) {
    const d = halfAt(at);
    const bytes = v128.load(at, 2);
    put(to, i8x16.sub(lowNibbles(bytes), i8x16.splat(8)), d, none);
    put(to + 64, i8x16.sub(highNibbles(bytes), i8x16.splat(8)), d, none);
  }
}

/** Q4_1, 20 bytes: f16 d, f16 m, 16 bytes of nibbles; w = d·q + m. */
export function decodeQ4_1(count: i32): void {
  let at = source;
  for (let to = floats, end = floats + 4 * count; to < end; at += 20, to += 128) {
    const d = halfAt(at);
    const offset = f32x4.neg(halfAt(at + 2));
    const bytes = v128.load(at, 4);
    put(to, lowNibbles(bytes), d, offset);
    put(to + 64, highNibbles(bytes), d, offset);
  }
}

/** Q5_0, 22 bytes: f16 d, a fifth bit per element, 16 bytes of nibbles; w = d·(q − 16). */
export function decodeQ5_0(count: i32): void {
  const none = f32x4.splat(0);
  let at = source;
  for (let to = floats, end = floats + 4 * count; to < end; at += 22, to += 128) {
    const d = halfAt(at);
    const bytes = v128.load(at, 6);
    const first = v128.or(lowNibbles(bytes), fifthBits(at + 2));
    const second = v128.or(highNibbles(bytes), fifthBits(at + 4));
    put(to, i8x16.sub(first, i8x16.splat(16)), d, none);
    put(to + 64, i8x16.sub(second, i8x16.splat(16)), d, none);
  }
}

/** Q5_1, 24 bytes: f16 d, f16 m, a fifth bit per element, 16 bytes of nibbles; w = d·q + m. */
export function decodeQ5_1(count: i32): void {
  let at = source;
  for (let to = floats, end = floats + 4 * count; to < end; at += 24, to += 128) {
    const d = halfAt(at);
    const offset = f32x4.neg(halfAt(at + 2));
    const bytes = v128.load(at, 8);
    put(to, v128.or(lowNibbles(bytes), fifthBits(at + 4)), d, offset);
    put(to + 64, v128.or(highNibbles(bytes), fifthBits(at + 6)), d, offset);
  }
}

/** Q8_0, 34 bytes: f16 d, 32 signed bytes; w = d·q. */
export function decodeQ8_0(count: i32): void {
  const none = f32x4.splat(0);
  let at = source;
  for (let to = floats, end = floats + 4 * count; to < end; at += 34, to += 128) {
    const d = halfAt(at);
    put(to, v128.load(at, 2), d, none);
    put(to + 64, v128.load(at, 18), d, none);
  }
}

/** 16 bits as 16 bytes of 0 or 16. */
function fifthBits(at: usize): v128 {
  const word = v128.load16_splat(at);
  // Byte i of the result looks at bit i % 8 of the word's byte i / 8.
  const bytes = v128.swizzle(word, i8x16(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1));
  const bit = i8x16(1, 2, 4, 8, 16, 32, 64, -128, 1, 2, 4, 8, 16, 32, 64, -128);
  return v128.and(i8x16.eq(v128.and(bytes, bit), bit), i8x16.splat(16));
}

/*
 * K-quants: 256 elements share an f16 scale d (and often a second one, dmin, for offsets); their
 * sub-blocks of 16 or 32 have small integer scales.
 */

/** Q2_K, 84 bytes: 16 × (4-bit scale, 4-bit min), 64 bytes of 2 bits, f16 d, f16 dmin. */
export function decodeQ2_K(count: i32): void {
  let at = source;
  for (let to = floats, end = floats + 4 * count; to < end; at += 84, to += 1024) {
    const d = half(load<u16>(at, 80));
    const dmin = half(load<u16>(at, 82));
    for (let sub = 0; sub < 16; sub++) {
      // Of each half of the block: four groups of 32 elements, in two columns of 16.
      const bytes = v128.load(at + 16 + 32 * (sub >> 3) + 16 * (sub & 1));
      const two = v128.and(i8x16.shr_u(bytes, sub & 6), i8x16.splat(3));
      const scale: u32 = load<u8>(at + sub);
      put(
        to + 64 * sub,
        two,
        f32x4.splat(d * <f32>(scale & 15)),
        f32x4.splat(dmin * <f32>(scale >> 4)),
      );
    }
  }
}

/** Q3_K, 110 bytes: 32 bytes of third bits, 64 bytes of 2 bits, 16 × 6-bit scale in 12, f16 d. */
export function decodeQ3_K(count: i32): void {
  const none = f32x4.splat(0);
  let at = source;
  for (let to = floats, end = floats + 4 * count; to < end; at += 110, to += 1024) {
    const d = half(load<u16>(at, 108));
    for (let sub = 0; sub < 16; sub++) {
      const column = 16 * (sub & 1);
      const bytes = v128.load(at + 32 + 32 * (sub >> 3) + column);
      const two = v128.and(i8x16.shr_u(bytes, sub & 6), i8x16.splat(3));
      const third = v128.and(i8x16.shr_u(v128.load(at + column), sub >> 1), i8x16.splat(1));
      const three = i8x16.sub(v128.or(two, i8x16.shl(third, 2)), i8x16.splat(4));
      const scale = f32x4.splat(d * <f32>scaleOfQ3(at + 96, sub));
      put(to + 64 * sub, three, scale, none);
    }
  }
}

/** Scale of sub-block j of Q3_K: low nibbles in 8 bytes, two upper bits each in 4 more. */
function scaleOfQ3(at: usize, j: i32): i32 {
  const low: i32 = load<u8>(at + (j & 7)) >> (<u8>(j >> 3) * 4);
  const high: i32 = load<u8>(at + 8 + (j & 3)) >> (<u8>(j >> 2) * 2);
  return ((low & 15) | ((high & 3) << 4)) - 32;
}

/** Q4_K, 144 bytes: f16 d, f16 dmin, 8 × (6-bit scale, 6-bit min) in 12, 128 bytes of nibbles. */
export function decodeQ4_K(count: i32): void {
  decodeNibbles(count, 144, i8x16.splat(0));
}

/** Q5_K, 176 bytes: as Q4_K, with 32 bytes of fifth bits between scales and nibbles. */
export function decodeQ5_K(count: i32): void {
  decodeNibbles(count, 176, i8x16.splat(16));
}

/** @param fifth what a fifth bit stands for: 0 where there are none, and nibbles lie in their place */
function decodeNibbles(count: i32, size: usize, fifth: v128): void {
  let at = source;
  for (let to = floats, end = floats + 4 * count; to < end; at += size, to += 1024) {
    const d = half(load<u16>(at));
    const dmin = half(load<u16>(at, 2));
    const fifths1 = v128.load(at, 16);
    const fifths2 = v128.load(at, 32);
    for (let pair = 0; pair < 4; pair++) {
      const nibbles = at + size - 128 + 32 * pair;
      const first = v128.load(nibbles);
      const second = v128.load(nibbles, 16);
      // Bit 2·pair is of the low nibbles, the next one of the high nibbles.
      const bits1 = i8x16.shl(i8x16.shr_u(fifths1, 2 * pair), 4);
      const bits2 = i8x16.shl(i8x16.shr_u(fifths2, 2 * pair), 4);
      const out = to + 256 * pair;
      const scale1 = f32x4.splat(d * <f32>scaleOf(at + 4, 2 * pair));
      const min1 = f32x4.splat(dmin * <f32>minOf(at + 4, 2 * pair));
      put(out, v128.or(lowNibbles(first), v128.and(bits1, fifth)), scale1, min1);
      put(out + 64, v128.or(lowNibbles(second), v128.and(bits2, fifth)), scale1, min1);
      const scale2 = f32x4.splat(d * <f32>scaleOf(at + 4, 2 * pair + 1));
      const min2 = f32x4.splat(dmin * <f32>minOf(at + 4, 2 * pair + 1));
      const high1 = v128.and(i8x16.shr_u(bits1, 1), fifth);
      const high2 = v128.and(i8x16.shr_u(bits2, 1), fifth);
      put(out + 128, v128.or(highNibbles(first), high1), scale2, min2);
      put(out + 192, v128.or(highNibbles(second), high2), scale2, min2);
    }
  }
}

/** Scale of sub-block j of Q4_K and Q5_K: four in the low 6 bits of 4 bytes, four scattered. */
function scaleOf(at: usize, j: i32): i32 {
  if (j < 4) return load<u8>(at + j) & 63;
  return (load<u8>(at + j + 4) & 15) | ((load<u8>(at + j - 4) >> 6) << 4);
}

/** Min of sub-block j of Q4_K and Q5_K. */
function minOf(at: usize, j: i32): i32 {
  if (j < 4) return load<u8>(at + j + 4) & 63;
  return (load<u8>(at + j + 4) >> 4) | ((load<u8>(at + j) >> 6) << 4);
}

/** Q6_K, 210 bytes: 128 bytes of nibbles, 64 bytes of upper 2 bits, 16 signed scales, f16 d. */
export function decodeQ6_K(count: i32): void {
  const none = f32x4.splat(0);
  const upper = i8x16.splat(48);
  const zero = i8x16.splat(32);
  let at = source;
  for (let to = floats, end = floats + 4 * count; to < end; at += 210, to += 1024) {
    const d = half(load<u16>(at, 208));
    for (let part = 0; part < 4; part++) {
      // Two parts per half of the block, 16 columns each; a column holds four elements.
      const column = 16 * (part & 1);
      const a = v128.load(at + 64 * (part >> 1) + column);
      const b = v128.load(at + 64 * (part >> 1) + column, 32);
      const bits = v128.load(at + 32 * (part >> 1) + column, 128);
      const sub = at + 8 * (part >> 1) + (part & 1);
      const out = to + 512 * (part >> 1) + 4 * column;
      const q1 = v128.or(lowNibbles(a), v128.and(i8x16.shl(bits, 4), upper));
      const q2 = v128.or(lowNibbles(b), v128.and(i8x16.shl(bits, 2), upper));
      const q3 = v128.or(highNibbles(a), v128.and(bits, upper));
      const q4 = v128.or(highNibbles(b), v128.and(i8x16.shr_u(bits, 2), upper));
      put(out, i8x16.sub(q1, zero), f32x4.splat(d * <f32>load<i8>(sub, 192)), none);
      put(out + 128, i8x16.sub(q2, zero), f32x4.splat(d * <f32>load<i8>(sub, 194)), none);
      put(out + 256, i8x16.sub(q3, zero), f32x4.splat(d * <f32>load<i8>(sub, 196)), none);
      put(out + 384, i8x16.sub(q4, zero), f32x4.splat(d * <f32>load<i8>(sub, 198)), none);
    }
  }
}

function halfAt(at: usize): v128 {
  return f32x4.splat(half(load<u16>(at)));
}

function lowNibbles(bytes: v128): v128 {
  return v128.and(bytes, i8x16.splat(15));
}

function highNibbles(bytes: v128): v128 {
  return i8x16.shr_u(bytes, 4);
}

/** Stores 16 elements scale·q − offset. */
function put(to: usize, integers: v128, scale: v128, offset: v128): void {
  const low = i16x8.extend_low_i8x16_s(integers);
  const high = i16x8.extend_high_i8x16_s(integers);
  v128.store(to, scaled(i32x4.extend_low_i16x8_s(low), scale, offset));
  v128.store(to, scaled(i32x4.extend_high_i16x8_s(low), scale, offset), 16);
  v128.store(to, scaled(i32x4.extend_low_i16x8_s(high), scale, offset), 32);
  v128.store(to, scaled(i32x4.extend_high_i16x8_s(high), scale, offset), 48);
}

function scaled(integers: v128, scale: v128, offset: v128): v128 {
  return f32x4.sub(f32x4.mul(scale, f32x4.convert_i32x4_s(integers)), offset);
}

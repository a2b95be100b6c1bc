import { floats, source } from './memory';

/*
 * Floats of 16 and 8 bits at `source` as f32 at `floats`. `count` is a multiple of 8 (16 bits) or 16
 * (8 bits); up to 15 elements more than that may be read and written.
 */

/** F16, IEEE's half. */
export function decodeF16(count: i32): void {
  for (let i = 0; i < count; i += 8) {
    const halves = v128.load(source + 2 * i);
    const to = floats + 4 * i;
    v128.store(to, halvesToFloats(i32x4.extend_low_i16x8_u(halves)));
    v128.store(to, halvesToFloats(i32x4.extend_high_i16x8_u(halves)), 16);
  }
}

/** BF16: the upper half of an f32. */
export function decodeBF16(count: i32): void {
  for (let i = 0; i < count; i += 8) {
    const words = v128.load(source + 2 * i);
    const to = floats + 4 * i;
    v128.store(to, i32x4.shl(i32x4.extend_low_i16x8_u(words), 16));
    v128.store(to, i32x4.shl(i32x4.extend_high_i16x8_u(words), 16), 16);
  }
}

/** F8_E5M2: the upper byte of a half. */
export function decodeE5M2(count: i32): void {
  for (let i = 0; i < count; i += 16) {
    const bytes = v128.load(source + i);
    const low = i16x8.shl(i16x8.extend_low_i8x16_u(bytes), 8);
    const high = i16x8.shl(i16x8.extend_high_i8x16_u(bytes), 8);
    const to = floats + 4 * i;
    v128.store(to, halvesToFloats(i32x4.extend_low_i16x8_u(low)));
    v128.store(to, halvesToFloats(i32x4.extend_high_i16x8_u(low)), 16);
    v128.store(to, halvesToFloats(i32x4.extend_low_i16x8_u(high)), 32);
    v128.store(to, halvesToFloats(i32x4.extend_high_i16x8_u(high)), 48);
  }
}

/**
 * F8_E4M3 in the "fn" form that checkpoints use: no infinities, and NaN only where all bits but the sign
 * are ones, so that the largest value is 448.
 */
export function decodeE4M3(count: i32): void {
  for (let i = 0; i < count; i += 16) {
    const bytes = v128.load(source + i);
    const low = i16x8.extend_low_i8x16_u(bytes);
    const high = i16x8.extend_high_i8x16_u(bytes);
    const to = floats + 4 * i;
    v128.store(to, e4m3ToFloats(i32x4.extend_low_i16x8_u(low)));
    v128.store(to, e4m3ToFloats(i32x4.extend_high_i16x8_u(low)), 16);
    v128.store(to, e4m3ToFloats(i32x4.extend_low_i16x8_u(high)), 32);
    v128.store(to, e4m3ToFloats(i32x4.extend_high_i16x8_u(high)), 48);
  }
}

/** Bytes as 0 … 255. */
export function decodeU8(count: i32): void {
  for (let i = 0; i < count; i += 8) {
    const words = v128.load8x8_u(source + i);
    const to = floats + 4 * i;
    v128.store(to, f32x4.convert_i32x4_u(i32x4.extend_low_i16x8_u(words)));
    v128.store(to, f32x4.convert_i32x4_u(i32x4.extend_high_i16x8_u(words)), 16);
  }
}

/** Multiplies decoded elements, four at a time. */
export function multiply(count: i32, factor: f32): void {
  const factors = f32x4.splat(factor);
  for (let i = 0; i < count; i += 4) {
    const at = floats + 4 * i;
    v128.store(at, f32x4.mul(v128.load(at), factors));
  }
}

/** The value of one half. */
export function half(bits: u32): f32 {
  return f32x4.extract_lane(halvesToFloats(i32x4.splat(bits)), 0);
}

/** Halves in lanes of 32 bits. */
function halvesToFloats(bits: v128): v128 {
  const magnitude = i32x4.shl(v128.and(bits, i32x4.splat(0x7fff)), 13);
  const finite = rebias(magnitude, 112);
  const special = v128.or(magnitude, i32x4.splat(0x7f800000));
  const isSpecial = i32x4.ge_s(magnitude, i32x4.splat(0x7c00 << 13));
  const sign = i32x4.shl(v128.and(bits, i32x4.splat(0x8000)), 16);
  return v128.or(v128.bitselect(special, finite, isSpecial), sign);
}

/** Bytes of F8_E4M3 in lanes of 32 bits. */
function e4m3ToFloats(bits: v128): v128 {
  const magnitude = i32x4.shl(v128.and(bits, i32x4.splat(0x7f)), 20);
  const finite = rebias(magnitude, 120);
  const isNotNumber = i32x4.eq(magnitude, i32x4.splat(0x7f << 20));
  const sign = i32x4.shl(v128.and(bits, i32x4.splat(0x80)), 24);
  return v128.or(v128.bitselect(i32x4.splat(0x7fc00000), finite, isNotNumber), sign);
}

/**
 * f32 from exponents and fractions of a smaller type at their places in f32.
 *
 * @param bias the difference of the exponents' biases
 */
function rebias(magnitude: v128, bias: i32): v128 {
  const normal = i32x4.add(magnitude, i32x4.splat(bias << 23));
  // Without an exponent there is no leading 1: with one, and then without its value. A product with a
  // power of two gives the same, but processors take long for subnormal operands.
  const one = i32x4.splat((bias + 1) << 23);
  const subnormal = f32x4.sub(i32x4.add(magnitude, one), one);
  return v128.bitselect(subnormal, normal, i32x4.lt_s(magnitude, i32x4.splat(1 << 23)));
}

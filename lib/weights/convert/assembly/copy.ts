import { half } from './floats';
import { addScaled, packNibbles, sumIntegersAcross } from './lanes';
import { scales, source, values } from './memory';

/*
 * GGML's Q8_0 and Q4_0 have the integers and scales of our own blocks: both functions take them over
 * from `source`, multiply the scales by `factor` and add Σ w² to the sums. There is no error to add.
 */

/** Q8_0 → 8 bits. */
export function copy8(blocks: i32, factor: f32): void {
  let from = source;
  let to = values;
  let scale = scales;
  for (; blocks > 0; blocks--) {
    const unit = half(load<u16>(from)) * factor;
    f32.store(scale, unit);
    const first = v128.load(from, 2);
    const second = v128.load(from, 18);
    v128.store(to, v128.xor(first, i8x16.splat(-128)));
    v128.store(to, v128.xor(second, i8x16.splat(-128)), 16);
    addNorm(squares(first), squares(second), unit);
    from += 34;
    to += 32;
    scale += 4;
  }
}

/** Q4_0 → 4 bits, in our order of the nibbles. */
export function copy4(blocks: i32, factor: f32): void {
  const eight = i8x16.splat(8);
  let from = source;
  let to = values;
  let scale = scales;
  for (; blocks > 0; blocks--) {
    const unit = half(load<u16>(from)) * factor;
    f32.store(scale, unit);
    const bytes = v128.load(from, 2);
    const low = v128.and(bytes, i8x16.splat(15));
    const high = i8x16.shr_u(bytes, 4);
    v128.store(to, packNibbles(low, high));
    addNorm(squares(i8x16.sub(low, eight)), squares(i8x16.sub(high, eight)), unit);
    from += 18;
    to += 16;
    scale += 4;
  }
}

/** Sums of four squares each of 16 integers. */
function squares(bytes: v128): v128 {
  const low = i16x8.extend_low_i8x16_s(bytes);
  const high = i16x8.extend_high_i8x16_s(bytes);
  return i32x4.add(i32x4.dot_i16x8_s(low, low), i32x4.dot_i16x8_s(high, high));
}

function addNorm(first: v128, second: v128, scale: f32): void {
  const norm = sumIntegersAcross(i32x4.add(first, second));
  const pair = v128.shuffle<i32>(i32x4.splat(0), norm, 0, 4, 1, 5);
  addScaled(f64x2.convert_low_i32x4_s(pair), f32x4.splat(scale));
}

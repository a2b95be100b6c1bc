import { addSquares, addToSums, maxAcross, packBytes, sumAcross } from './lanes';
import { floats, scales, values } from './memory';

/*
 * `quantise8` and `quantise4` convert blocks of 32 at `floats` to integers at `values` and scales at `scales`, and
 * add Σ error² and Σ w² to the sums. NaN and infinity need no test: they make the second sum NaN.
 */

/**
 * A block whose largest magnitude is below this counts as zeros: f32 cannot hold its reciprocal. Half
 * floats, and so all GGML types, cannot even express it.
 */
export const smallest: f32 = 7.888609052210118e-31; // 2^-100

/** 1.5·2²³: adding it rounds a small f32 to an integer, which then lies in the low bits. */
export const roundingBias: f32 = 12582912;

/** 8 bits: scale = max|w| / 127; a byte is the integer plus 128. */
export function quantise8(blocks: i32): void {
  const bias = f32x4.splat(roundingBias + 128);
  const mask = i32x4.splat(255);
  let x = floats;
  let bytes = values;
  let scale = scales;
  for (; blocks > 0; blocks--) {
    const largest = maxAcross(f32x4.pmax(largestOf16(x), largestOf16(x + 64)));
    const max = f32x4.extract_lane(largest, 0);
    const usable = max >= smallest;
    const unit = f32x4.splat(max / 127);
    f32.store(scale, select<f32>(max / 127, 0, usable));
    const inverse = f32x4.splat(select<f32>(127 / max, 0, usable));
    let error = f32x4.splat(0);
    let norm = f32x4.splat(0);
    for (let half = 0; half < 2; half++) {
      // From here on in units of the scale, so that squares neither overflow nor vanish.
      const a = f32x4.mul(v128.load(x), inverse);
      const b = f32x4.mul(v128.load(x, 16), inverse);
      const c = f32x4.mul(v128.load(x, 32), inverse);
      const d = f32x4.mul(v128.load(x, 48), inverse);
      norm = addSquares(norm, a, b, c, d);
      const ia = f32x4.add(a, bias);
      const ib = f32x4.add(b, bias);
      const ic = f32x4.add(c, bias);
      const id = f32x4.add(d, bias);
      error = addSquares(
        error,
        f32x4.sub(a, f32x4.sub(ia, bias)),
        f32x4.sub(b, f32x4.sub(ib, bias)),
        f32x4.sub(c, f32x4.sub(ic, bias)),
        f32x4.sub(d, f32x4.sub(id, bias)),
      );
      v128.store(
        bytes,
        packBytes(v128.and(ia, mask), v128.and(ib, mask), v128.and(ic, mask), v128.and(id, mask)),
      );
      x += 64;
      bytes += 16;
    }
    addToSums(sumAcross(error), sumAcross(norm), unit);
    scale += 4;
  }
}

function largestOf16(x: usize): v128 {
  return f32x4.pmax(
    f32x4.pmax(f32x4.abs(v128.load(x)), f32x4.abs(v128.load(x, 16))),
    f32x4.pmax(f32x4.abs(v128.load(x, 32)), f32x4.abs(v128.load(x, 48))),
  );
}

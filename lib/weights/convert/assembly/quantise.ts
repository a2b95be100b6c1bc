import { addToSums, maxAcross, minAcross, packBytes, packNibbles, sum, sumAcross } from './lanes';
import { floats, scales, values } from './memory';

/*
 * Both functions convert blocks of 32 at `floats` to integers at `values` and scales at `scales`, and
 * add Σ error² and Σ w² to the sums. NaN and infinity need no test: they make the second sum NaN.
 */

/**
 * A block whose largest magnitude is below this counts as zeros: f32 cannot hold its reciprocal. Half
 * floats, and so all GGML types, cannot even express it.
 */
const smallest: f32 = 7.888609052210118e-31; // 2^-100

/** 1.5·2²³: adding it rounds a small f32 to an integer, which then lies in the low bits. */
const roundingBias: f32 = 12582912;

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

/**
 * How much finer than (extreme value)/−8 the scales are that the 4-bit quantiser tries. It keeps the one
 * whose integers fit best, and then takes the scale that suits these integers by least squares. Against
 * the first alone (GGML's Q4_0) the RMS error of normally distributed weights falls by 5 %, that of Q4_K
 * by 10 %.
 */
const fineness: usize = memory.data<f32>([1, 8.49 / 8, 7.5 / 8], 16);
const attempts = 3;

/** 4 bits: a nibble is the integer −8 … 7 plus 8. Overwrites the floats. */
export function quantise4(blocks: i32): void {
  const bias = f32x4.splat(roundingBias + 8);
  const mask = i32x4.splat(15);
  let x = floats;
  let nibbles = values;
  let scale = scales;
  for (; blocks > 0; blocks--) {
    const low = minAcross(f32x4.pmin(leastOf16(x), leastOf16(x + 64)));
    const high = maxAcross(f32x4.pmax(greatestOf16(x), greatestOf16(x + 64)));
    // Not `select`: it becomes a branch, which cannot be predicted here.
    const isHigh = f32x4.gt(high, f32x4.sub(f32x4.splat(0), low));
    const extreme = f32x4.extract_lane(v128.bitselect(high, low, isHigh), 0);
    const usable = abs<f32>(extreme) >= smallest;
    const inverse = f32x4.splat(select<f32>(-8 / extreme, 0, usable));
    let norm = f32x4.splat(0);
    for (let half: usize = 0; half < 128; half += 64) {
      const a = f32x4.mul(v128.load(x + half), inverse);
      const b = f32x4.mul(v128.load(x + half, 16), inverse);
      const c = f32x4.mul(v128.load(x + half, 32), inverse);
      const d = f32x4.mul(v128.load(x + half, 48), inverse);
      norm = addSquares(norm, a, b, c, d);
      v128.store(x + half, a);
      v128.store(x + half, b, 16);
      v128.store(x + half, c, 32);
      v128.store(x + half, d, 48);
    }

    let bestScore = f32x4.splat(-1);
    let bestRatio = f32x4.splat(0);
    let best = f32x4.splat(0);
    for (let attempt: usize = 0; attempt < 4 * attempts; attempt += 4) {
      const fine = v128.load32_splat(fineness + attempt);
      let products = f32x4.splat(0);
      let squares = f32x4.splat(0);
      for (let half: usize = 0; half < 128; half += 64) {
        const a = rounded(v128.load(x + half), fine);
        const b = rounded(v128.load(x + half, 16), fine);
        const c = rounded(v128.load(x + half, 32), fine);
        const d = rounded(v128.load(x + half, 48), fine);
        products = f32x4.add(products, sumOfProducts(x + half, a, b, c, d));
        squares = f32x4.add(squares, sumOfSquares(a, b, c, d));
      }
      const product = sumAcross(products);
      const square = sumAcross(squares);
      // At least 1, so that a block of zeros does not divide by zero.
      const ratio = f32x4.div(product, f32x4.pmax(f32x4.splat(1), square));
      const score = f32x4.mul(product, ratio);
      const isBetter = f32x4.gt(score, bestScore);
      bestScore = v128.bitselect(score, bestScore, isBetter);
      bestRatio = v128.bitselect(ratio, bestRatio, isBetter);
      best = v128.bitselect(fine, best, isBetter);
    }

    const unit = extreme * -0.125;
    f32.store(scale, select<f32>(unit * f32x4.extract_lane(bestRatio, 0), 0, usable));
    let error = f32x4.splat(0);
    for (let half: usize = 0; half < 128; half += 64) {
      const a = rounded(v128.load(x + half), best);
      const b = rounded(v128.load(x + half, 16), best);
      const c = rounded(v128.load(x + half, 32), best);
      const d = rounded(v128.load(x + half, 48), best);
      error = addSquares(
        error,
        f32x4.sub(v128.load(x + half), f32x4.mul(a, bestRatio)),
        f32x4.sub(v128.load(x + half, 16), f32x4.mul(b, bestRatio)),
        f32x4.sub(v128.load(x + half, 32), f32x4.mul(c, bestRatio)),
        f32x4.sub(v128.load(x + half, 48), f32x4.mul(d, bestRatio)),
      );
      const bytes = packBytes(
        v128.and(f32x4.add(a, bias), mask),
        v128.and(f32x4.add(b, bias), mask),
        v128.and(f32x4.add(c, bias), mask),
        v128.and(f32x4.add(d, bias), mask),
      );
      i64.store(nibbles, i64x2.extract_lane(packNibbles(bytes, bytes), 0));
      nibbles += 8;
    }
    addToSums(sumAcross(error), sumAcross(norm), f32x4.splat(unit));
    x += 128;
    scale += 4;
  }
}

/** One after another: the order is part of the result. */
function addSquares(total: v128, a: v128, b: v128, c: v128, d: v128): v128 {
  const two = f32x4.add(f32x4.add(total, f32x4.mul(a, a)), f32x4.mul(b, b));
  return f32x4.add(f32x4.add(two, f32x4.mul(c, c)), f32x4.mul(d, d));
}

function largestOf16(x: usize): v128 {
  return f32x4.pmax(
    f32x4.pmax(f32x4.abs(v128.load(x)), f32x4.abs(v128.load(x, 16))),
    f32x4.pmax(f32x4.abs(v128.load(x, 32)), f32x4.abs(v128.load(x, 48))),
  );
}

function greatestOf16(x: usize): v128 {
  return f32x4.pmax(
    f32x4.pmax(v128.load(x), v128.load(x, 16)),
    f32x4.pmax(v128.load(x, 32), v128.load(x, 48)),
  );
}

function leastOf16(x: usize): v128 {
  return f32x4.pmin(
    f32x4.pmin(v128.load(x), v128.load(x, 16)),
    f32x4.pmin(v128.load(x, 32), v128.load(x, 48)),
  );
}

/** Four elements times a scale as integers −8 … 7, which are f32 here. */
function rounded(x: v128, scale: v128): v128 {
  const bias = f32x4.splat(roundingBias + 8);
  return f32x4.sub(f32x4.add(f32x4.pmin(f32x4.mul(x, scale), f32x4.splat(7)), bias), bias);
}

/** Σ q·x over 16 elements, in four lanes. */
function sumOfProducts(x: usize, a: v128, b: v128, c: v128, d: v128): v128 {
  return sum(
    f32x4.mul(a, v128.load(x)),
    f32x4.mul(b, v128.load(x, 16)),
    f32x4.mul(c, v128.load(x, 32)),
    f32x4.mul(d, v128.load(x, 48)),
  );
}

/** Σ q² over 16 elements, in four lanes. */
function sumOfSquares(a: v128, b: v128, c: v128, d: v128): v128 {
  return sum(f32x4.mul(a, a), f32x4.mul(b, b), f32x4.mul(c, c), f32x4.mul(d, d));
}

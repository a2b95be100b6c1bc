import { sums } from './memory';

/** (a + b) + (c + d): a chain would wait for each sum before the next. */
export function sum(a: v128, b: v128, c: v128, d: v128): v128 {
  return f32x4.add(f32x4.add(a, b), f32x4.add(c, d));
}

/** total + a² + b² + c² + d², one after another: the order is part of the result. */
export function addSquares(total: v128, a: v128, b: v128, c: v128, d: v128): v128 {
  const two = f32x4.add(f32x4.add(total, f32x4.mul(a, a)), f32x4.mul(b, b));
  return f32x4.add(f32x4.add(two, f32x4.mul(c, c)), f32x4.mul(d, d));
}

/** The sum of all four lanes, in every lane. */
export function sumAcross(lanes: v128): v128 {
  const pairs = f32x4.add(lanes, v128.shuffle<f32>(lanes, lanes, 2, 3, 0, 1));
  return f32x4.add(pairs, v128.shuffle<f32>(pairs, pairs, 1, 0, 3, 2));
}

/** As {@link sumAcross}, of integers. */
export function sumIntegersAcross(lanes: v128): v128 {
  const pairs = i32x4.add(lanes, v128.shuffle<i32>(lanes, lanes, 2, 3, 0, 1));
  return i32x4.add(pairs, v128.shuffle<i32>(pairs, pairs, 1, 0, 3, 2));
}

/** The largest lane, in every lane. */
export function maxAcross(lanes: v128): v128 {
  const pairs = f32x4.pmax(lanes, v128.shuffle<f32>(lanes, lanes, 2, 3, 0, 1));
  return f32x4.pmax(pairs, v128.shuffle<f32>(pairs, pairs, 1, 0, 3, 2));
}

/** The sums of four lanes each, of four vectors. */
export function sumEach(a: v128, b: v128, c: v128, d: v128): v128 {
  const ab = f32x4.add(firstHalves(a, b), secondHalves(a, b));
  const cd = f32x4.add(firstHalves(c, d), secondHalves(c, d));
  return f32x4.add(evenLanes(ab, cd), oddLanes(ab, cd));
}

/** The smallest lanes of four vectors. */
export function minEach(a: v128, b: v128, c: v128, d: v128): v128 {
  const ab = f32x4.pmin(firstHalves(a, b), secondHalves(a, b));
  const cd = f32x4.pmin(firstHalves(c, d), secondHalves(c, d));
  return f32x4.pmin(evenLanes(ab, cd), oddLanes(ab, cd));
}

/** The largest lanes of four vectors. */
export function maxEach(a: v128, b: v128, c: v128, d: v128): v128 {
  const ab = f32x4.pmax(firstHalves(a, b), secondHalves(a, b));
  const cd = f32x4.pmax(firstHalves(c, d), secondHalves(c, d));
  return f32x4.pmax(evenLanes(ab, cd), oddLanes(ab, cd));
}

function firstHalves(a: v128, b: v128): v128 {
  return v128.shuffle<f32>(a, b, 0, 1, 4, 5);
}

function secondHalves(a: v128, b: v128): v128 {
  return v128.shuffle<f32>(a, b, 2, 3, 6, 7);
}

function evenLanes(a: v128, b: v128): v128 {
  return v128.shuffle<f32>(a, b, 0, 2, 4, 6);
}

function oddLanes(a: v128, b: v128): v128 {
  return v128.shuffle<f32>(a, b, 1, 3, 5, 7);
}

/** The low bytes of 16 lanes of 32 bits, each 0 … 255. */
export function packBytes(a: v128, b: v128, c: v128, d: v128): v128 {
  return i8x16.narrow_i16x8_u(i16x8.narrow_i32x4_s(a, b), i16x8.narrow_i32x4_s(c, d));
}

/** 32 bytes of 0 … 15 as 16 bytes, the even element in the low nibble. */
export function packNibbles(first: v128, second: v128): v128 {
  return i8x16.narrow_i16x8_u(nibblePairs(first), nibblePairs(second));
}

function nibblePairs(bytes: v128): v128 {
  return v128.and(v128.or(bytes, i16x8.shr_u(bytes, 4)), i16x8.splat(255));
}

/** Adds two sums [error, norm, –, –] of a block to those in memory. They are in units of its scale. */
export function addToSums(error: v128, norm: v128, scale: v128): void {
  addPair(v128.shuffle<f32>(error, norm, 0, 4, 1, 5), scale);
}

/** Adds the pair [error, norm, –, –] to those in memory. */
export function addPair(pair: v128, scale: v128): void {
  addScaled(f64x2.promote_low_f32x4(pair), scale);
}

/** Adds a pair of f64 in units of a scale to the sums in memory. */
export function addScaled(pair: v128, scale: v128): void {
  const unit = f64x2.promote_low_f32x4(scale);
  const product = f64x2.mul(f64x2.mul(pair, unit), unit);
  v128.store(sums, f64x2.add(v128.load(sums), product));
}

/**
 * Seeded noise that is the same on every machine: Philox4x32-10 (Salmon et al., "Parallel random
 * numbers: as easy as 1, 2, 3", 2011) and Box–Muller. Logarithm, sine and cosine are our own, from
 * +, −, ×, ÷ and square root only, which IEEE 754 fixes to the last bit; those of `Math` differ
 * between engines.
 */

/** Inputs of a noise value. */
export interface NoiseRequest {
  /** 0 … 2^53 − 1; the API allows up to 9,999,999,999. */
  readonly seed: number;
  /** Index of the clip in a chained video: each has noise of its own. */
  readonly stream: number;
  /** Number of values. */
  readonly count: number;
  /** Which of the stream's draws: 0, the default, starts the clip, others are fresh noise of a step. */
  readonly draw?: number;
  /** Index of the first value; 0 when absent. */
  readonly offset?: number;
}

/**
 * Standard normal values. Value i depends on seed, stream, draw and i only.
 *
 * @throws RangeError when a number is not a whole one in its range
 */
export function gaussianNoise(request: NoiseRequest): Float32Array<ArrayBuffer> {
  const { seed, stream, count, draw = 0, offset = 0 } = request;
  checkWhole('seed', seed, Number.MAX_SAFE_INTEGER);
  checkWhole('stream', stream, 0xffffffff);
  checkWhole('draw', draw, 0xffffffff);
  checkWhole('count', count, Number.MAX_SAFE_INTEGER);
  checkWhole('offset', offset, Number.MAX_SAFE_INTEGER - count);

  const values = new Float32Array(count);
  const words = new Uint32Array(4);
  const block = new Float64Array(4);
  const keyLow = seed >>> 0;
  const keyHigh = Math.floor(seed / 4_294_967_296);
  let filled = 0;
  while (filled < count) {
    const index = offset + filled;
    const counter = Math.floor(index / 4);
    words[0] = counter >>> 0;
    words[1] = Math.floor(counter / 4_294_967_296);
    words[2] = stream;
    words[3] = draw;
    philox4x32(words, keyLow, keyHigh);
    boxMuller(words, 0, block);
    boxMuller(words, 2, block);
    for (let lane = index % 4; lane < 4 && filled < count; lane++) {
      values[filled++] = block[lane] as number;
    }
  }
  return values;
}

function checkWhole(name: string, value: number, largest: number): void {
  if (!Number.isSafeInteger(value) || value < 0 || value > largest) {
    throw new RangeError(`${name} must be a whole number from 0 to ${largest}.`);
  }
}

/**
 * Ten rounds of Philox4x32, in place.
 *
 * @param words the counter, four 32-bit words; becomes the random words
 */
export function philox4x32(words: Uint32Array, keyLow: number, keyHigh: number): void {
  let [x0 = 0, x1 = 0, x2 = 0, x3 = 0] = words;
  let k0 = keyLow;
  let k1 = keyHigh;
  for (let round = 0; round < 10; round++) {
    const high0 = multiplyHigh(0xd2511f53, x0);
    const low0 = Math.imul(0xd2511f53, x0);
    const high1 = multiplyHigh(0xcd9e8d57, x2);
    const low1 = Math.imul(0xcd9e8d57, x2);
    x0 = (high1 ^ x1 ^ k0) >>> 0;
    x1 = low1 >>> 0;
    x2 = (high0 ^ x3 ^ k1) >>> 0;
    x3 = low0 >>> 0;
    k0 = (k0 + 0x9e3779b9) >>> 0;
    k1 = (k1 + 0xbb67ae85) >>> 0;
  }
  words[0] = x0;
  words[1] = x1;
  words[2] = x2;
  words[3] = x3;
}

/** Upper 32 bits of a 32×32-bit product; every partial sum stays below 2^53. */
function multiplyHigh(a: number, b: number): number {
  const aLow = a & 0xffff;
  const aHigh = a >>> 16;
  const bLow = b & 0xffff;
  const bHigh = b >>> 16;
  const middle = aHigh * bLow + ((aLow * bLow) >>> 16);
  const carry = aLow * bHigh + (middle % 65_536);
  return aHigh * bHigh + Math.floor(middle / 65_536) + Math.floor(carry / 65_536);
}

/** Two random words at `at` become two normal values at `at`. */
function boxMuller(words: Uint32Array, at: number, normals: Float64Array): void {
  const radius = Math.sqrt(-2 * lnUnit(words[at] as number));
  // Angle 2π·u, u = (word + ½) / 2^32: the top two bits are the quadrant, the rest is exact in it.
  const word = words[at + 1] as number;
  const quadrant = word >>> 30;
  const part = ((word & 0x3fffffff) + 0.5) / 1_073_741_824;
  const sine = part <= 0.5 ? sineOf(part * halfPi) : cosineOf((1 - part) * halfPi);
  const cosine = part <= 0.5 ? cosineOf(part * halfPi) : sineOf((1 - part) * halfPi);
  // Turning by a quadrant: (c, s) → (−s, c) → (−c, −s) → (s, −c).
  let x = cosine;
  let y = sine;
  if (quadrant === 1) [x, y] = [-sine, cosine];
  else if (quadrant === 2) [x, y] = [-cosine, -sine];
  else if (quadrant === 3) [x, y] = [sine, -cosine];
  normals[at] = radius * x;
  normals[at + 1] = radius * y;
}

const halfPi = Math.PI / 2;
const ln2 = Math.LN2;
const sqrt2 = Math.SQRT2;

/** 2^k for k = 0 … 31. */
const powersOfTwo = Array.from({ length: 32 }, (_, k) => (k < 31 ? 1 << k : 2_147_483_648));

/** ln((word + ½) / 2^32), to about 1e-16 relative: ln m = 2·artanh((m−1)/(m+1)) for m near 1. */
function lnUnit(word: number): number {
  const shifted = word + 0.5;
  let exponent = word === 0 ? -1 : 31 - Math.clz32(word);
  let mantissa = word === 0 ? 1 : shifted / (powersOfTwo[exponent] as number);
  if (mantissa > sqrt2) {
    mantissa /= 2;
    exponent++;
  }
  const s = (mantissa - 1) / (mantissa + 1); // |s| ≤ 0.172
  const square = s * s;
  let series = 0;
  for (let n = 23; n >= 1; n -= 2) series = series * square + 1 / n;
  return (exponent - 32) * ln2 + 2 * s * series;
}

/** sin x for 0 ≤ x ≤ π/4, by its Taylor series. */
function sineOf(x: number): number {
  const square = x * x;
  let series = 1;
  for (let n = 16; n >= 2; n -= 2) series = 1 - (square / (n * (n + 1))) * series;
  return x * series;
}

/** cos x for 0 ≤ x ≤ π/4, by its Taylor series. */
function cosineOf(x: number): number {
  const square = x * x;
  let series = 1;
  for (let n = 17; n >= 1; n -= 2) series = 1 - (square / (n * (n + 1))) * series;
  return series;
}

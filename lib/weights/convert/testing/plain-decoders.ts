/*
 * Decoders of every element type in plain TypeScript, one element after another as the formats are
 * described. The kernels are compared with them.
 */

type Decoder = (bytes: Uint8Array, out: Float32Array) => void;

/** By the type's name: writes whole blocks as f32; `out` has exactly their elements. */
export const plainDecoders: Readonly<Record<string, Decoder>> = {
  F16: decodeF16,
  BF16: decodeBF16,
  F8_E4M3: byteDecoder(e4m3Table),
  F8_E5M2: byteDecoder(e5m2Table),
  U8: (bytes, out) => out.set(bytes),
  Q4_0: decodeQ4_0,
  Q4_1: decodeQ4_1,
  Q5_0: decodeQ5_0,
  Q5_1: decodeQ5_1,
  Q8_0: decodeQ8_0,
  Q2_K: decodeQ2_K,
  Q3_K: decodeQ3_K,
  Q4_K: decodeQ4_K,
  Q5_K: decodeQ5_K,
  Q6_K: decodeQ6_K,
};

let halfTable: Float32Array | undefined;

/** Value of every IEEE half, by its 16 bits. Built once: a table is much faster than arithmetic. */
function halves(): Float32Array {
  halfTable ??= Float32Array.from({ length: 65_536 }, (_, bits) => smallFloat(bits, 5, 10));
  return halfTable;
}

/** Value of every F8_E5M2 byte: the upper byte of an IEEE half. */
function e5m2Table(): Float32Array {
  return Float32Array.from({ length: 256 }, (_, bits) => smallFloat(bits, 5, 2));
}

/**
 * Value of every F8_E4M3 byte in the "fn" form that checkpoints use: no infinities, and NaN only where
 * all bits but the sign are ones, so that the largest value is 448.
 */
function e4m3Table(): Float32Array {
  const table = Float32Array.from({ length: 256 }, (_, bits) => smallFloat(bits & 127, 4, 3));
  for (let fraction = 0; fraction < 7; fraction++) table[0x78 | fraction] = (8 + fraction) * 32;
  for (let bits = 0; bits < 128; bits++) table[128 | bits] = -(table[bits] as number);
  return table;
}

/** Value of an IEEE float of `1 + exponentBits + fractionBits` bits. */
function smallFloat(bits: number, exponentBits: number, fractionBits: number): number {
  const exponents = 2 ** exponentBits;
  const fractions = 2 ** fractionBits;
  const exponent = (bits >>> fractionBits) & (exponents - 1);
  const fraction = bits & (fractions - 1);
  const least = 2 ** (2 - exponents / 2 - fractionBits); // the smallest subnormal
  let value: number;
  if (exponent === exponents - 1) value = fraction === 0 ? Number.POSITIVE_INFINITY : Number.NaN;
  else if (exponent === 0) value = fraction * least;
  else value = (fractions + fraction) * 2 ** (exponent - 1) * least;
  return bits >>> (exponentBits + fractionBits) ? -value : value;
}

/** Little-endian 16-bit words; copied only where their address is odd. */
function words(bytes: Uint8Array): Uint16Array {
  const own = bytes.byteOffset % 2 === 0 ? bytes : bytes.slice();
  return new Uint16Array(own.buffer, own.byteOffset, own.byteLength / 2);
}

/** Writes F16 elements as f32. */
function decodeF16(bytes: Uint8Array, out: Float32Array): void {
  const source = words(bytes);
  const table = halves();
  for (let i = 0; i < source.length; i++) out[i] = table[source[i] as number] as number;
}

/** Writes BF16 elements, the upper halves of f32, as f32. */
function decodeBF16(bytes: Uint8Array, out: Float32Array): void {
  const source = words(bytes);
  const bits = new Uint32Array(out.buffer, out.byteOffset, out.length);
  for (let i = 0; i < source.length; i++) bits[i] = (source[i] as number) << 16;
}

/** A decoder of elements of one byte by their values. */
function byteDecoder(makeTable: () => Float32Array): Decoder {
  let table: Float32Array | undefined;
  return (bytes: Uint8Array, out: Float32Array): void => {
    table ??= makeTable();
    for (let i = 0; i < bytes.length; i++) out[i] = table[bytes[i] as number] as number;
  };
}

/*
 * GGML's types of one scale per 32 elements; layouts as in ggml-quants.c (`dequantize_row_q4_0`, …).
 * The two nibbles of byte j are the elements j and j + 16. Every product of a scale and an integer is
 * exact in f32, so rounding happens once, when the sum is stored.
 */

/** Q4_0, 18 bytes: f16 d, 16 bytes of nibbles; w = d·(q − 8). */
function decodeQ4_0(bytes: Uint8Array, out: Float32Array): void {
  const half = halves();
  for (let at = 0, o = 0; o < out.length; at += 18, o += 32) {
    const d = half[word(bytes, at)] as number;
    for (let j = 0; j < 16; j++) {
      const q = bytes[at + 2 + j] as number;
      out[o + j] = d * ((q & 15) - 8);
      out[o + j + 16] = d * ((q >> 4) - 8);
    }
  }
}

/** Q4_1, 20 bytes: f16 d, f16 m, 16 bytes of nibbles; w = d·q + m. */
function decodeQ4_1(bytes: Uint8Array, out: Float32Array): void {
  const half = halves();
  for (let at = 0, o = 0; o < out.length; at += 20, o += 32) {
    const d = half[word(bytes, at)] as number;
    const m = half[word(bytes, at + 2)] as number;
    for (let j = 0; j < 16; j++) {
      const q = bytes[at + 4 + j] as number;
      out[o + j] = d * (q & 15) + m;
      out[o + j + 16] = d * (q >> 4) + m;
    }
  }
}

/** Q5_0, 22 bytes: f16 d, a fifth bit per element, 16 bytes of nibbles; w = d·(q − 16). */
function decodeQ5_0(bytes: Uint8Array, out: Float32Array): void {
  const half = halves();
  for (let at = 0, o = 0; o < out.length; at += 22, o += 32) {
    const d = half[word(bytes, at)] as number;
    const low = word(bytes, at + 2) << 4;
    const high = word(bytes, at + 4) << 4;
    for (let j = 0; j < 16; j++) {
      const q = bytes[at + 6 + j] as number;
      out[o + j] = d * (((q & 15) | ((low >> j) & 16)) - 16);
      out[o + j + 16] = d * (((q >> 4) | ((high >> j) & 16)) - 16);
    }
  }
}

/** Q5_1, 24 bytes: f16 d, f16 m, a fifth bit per element, 16 bytes of nibbles; w = d·q + m. */
function decodeQ5_1(bytes: Uint8Array, out: Float32Array): void {
  const half = halves();
  for (let at = 0, o = 0; o < out.length; at += 24, o += 32) {
    const d = half[word(bytes, at)] as number;
    const m = half[word(bytes, at + 2)] as number;
    const low = word(bytes, at + 4) << 4;
    const high = word(bytes, at + 6) << 4;
    for (let j = 0; j < 16; j++) {
      const q = bytes[at + 8 + j] as number;
      out[o + j] = d * ((q & 15) | ((low >> j) & 16)) + m;
      out[o + j + 16] = d * ((q >> 4) | ((high >> j) & 16)) + m;
    }
  }
}

/** Q8_0, 34 bytes: f16 d, 32 signed bytes; w = d·q. */
function decodeQ8_0(bytes: Uint8Array, out: Float32Array): void {
  const half = halves();
  for (let at = 0, o = 0; o < out.length; at += 34, o += 32) {
    const d = half[word(bytes, at)] as number;
    for (let j = 0; j < 32; j++) out[o + j] = d * (((bytes[at + 2 + j] as number) << 24) >> 24);
  }
}

/** Little-endian 16 bits at any address. */
function word(bytes: Uint8Array, at: number): number {
  return (bytes[at] as number) | ((bytes[at + 1] as number) << 8);
}

/*
 * GGML's K-quants: 256 elements share an f16 scale d (and often a second one, dmin, for offsets);
 * their sub-blocks of 16 or 32 have small integer scales. Layouts as in ggml-quants.c
 * (`dequantize_row_q2_K`, …). d·scale·q is exact in f32 (11 + 8 + 5 bits at most), so rounding happens
 * once, when the difference is stored.
 */

/** Q2_K, 84 bytes: 16 × (4-bit scale, 4-bit min), 64 bytes of 2 bits, f16 d, f16 dmin. */
function decodeQ2_K(bytes: Uint8Array, out: Float32Array): void {
  const half = halves();
  for (let at = 0, o = 0; o < out.length; at += 84, o += 256) {
    const d = half[word(bytes, at + 80)] as number;
    const dmin = half[word(bytes, at + 82)] as number;
    for (let part = 0; part < 4; part++) {
      // Two parts per half of the block, 16 columns each; a column holds four elements.
      const column = (part & 1) * 16;
      const q = at + 16 + (part >> 1) * 32 + column;
      const to = o + (part >> 1) * 128 + column;
      const s = at + (part >> 1) * 8 + (part & 1);
      const s1 = bytes[s] as number;
      const s2 = bytes[s + 2] as number;
      const s3 = bytes[s + 4] as number;
      const s4 = bytes[s + 6] as number;
      const scale1 = d * (s1 & 15);
      const scale2 = d * (s2 & 15);
      const scale3 = d * (s3 & 15);
      const scale4 = d * (s4 & 15);
      const min1 = dmin * (s1 >> 4);
      const min2 = dmin * (s2 >> 4);
      const min3 = dmin * (s3 >> 4);
      const min4 = dmin * (s4 >> 4);
      for (let l = 0; l < 16; l++) {
        const four = bytes[q + l] as number;
        out[to + l] = scale1 * (four & 3) - min1;
        out[to + l + 32] = scale2 * ((four >> 2) & 3) - min2;
        out[to + l + 64] = scale3 * ((four >> 4) & 3) - min3;
        out[to + l + 96] = scale4 * (four >> 6) - min4;
      }
    }
  }
}

/** Q3_K, 110 bytes: 32 bytes of third bits, 64 bytes of 2 bits, 16 × 6-bit scale in 12, f16 d. */
function decodeQ3_K(bytes: Uint8Array, out: Float32Array): void {
  const table = halves();
  for (let at = 0, o = 0; o < out.length; at += 110, o += 256) {
    const d = table[word(bytes, at + 108)] as number;
    for (let part = 0; part < 4; part++) {
      const column = (part & 1) * 16;
      const half = part >> 1;
      const q = at + 32 + half * 32 + column;
      const to = o + half * 128 + column;
      const sub = half * 8 + (part & 1);
      const scale1 = d * scaleOfQ3(bytes, at + 96, sub);
      const scale2 = d * scaleOfQ3(bytes, at + 96, sub + 2);
      const scale3 = d * scaleOfQ3(bytes, at + 96, sub + 4);
      const scale4 = d * scaleOfQ3(bytes, at + 96, sub + 6);
      for (let l = 0; l < 16; l++) {
        const four = bytes[q + l] as number;
        const third = (bytes[at + column + l] as number) >> (4 * half);
        out[to + l] = scale1 * (((four & 3) | ((third & 1) << 2)) - 4);
        out[to + l + 32] = scale2 * ((((four >> 2) & 3) | ((third & 2) << 1)) - 4);
        out[to + l + 64] = scale3 * ((((four >> 4) & 3) | (third & 4)) - 4);
        out[to + l + 96] = scale4 * (((four >> 6) | ((third & 8) >> 1)) - 4);
      }
    }
  }
}

/** Q4_K, 144 bytes: f16 d, f16 dmin, 8 × (6-bit scale, 6-bit min) in 12, 128 bytes of nibbles. */
function decodeQ4_K(bytes: Uint8Array, out: Float32Array): void {
  const half = halves();
  for (let at = 0, o = 0; o < out.length; at += 144, o += 256) {
    const d = half[word(bytes, at)] as number;
    const dmin = half[word(bytes, at + 2)] as number;
    for (let pair = 0; pair < 4; pair++) {
      const q = at + 16 + pair * 32;
      const to = o + pair * 64;
      const scale1 = d * scaleOf(bytes, at + 4, 2 * pair);
      const min1 = dmin * minOf(bytes, at + 4, 2 * pair);
      const scale2 = d * scaleOf(bytes, at + 4, 2 * pair + 1);
      const min2 = dmin * minOf(bytes, at + 4, 2 * pair + 1);
      for (let l = 0; l < 32; l++) {
        const both = bytes[q + l] as number;
        out[to + l] = scale1 * (both & 15) - min1;
        out[to + l + 32] = scale2 * (both >> 4) - min2;
      }
    }
  }
}

/** Q5_K, 176 bytes: as Q4_K, with 32 bytes of fifth bits between scales and nibbles. */
function decodeQ5_K(bytes: Uint8Array, out: Float32Array): void {
  const half = halves();
  for (let at = 0, o = 0; o < out.length; at += 176, o += 256) {
    const d = half[word(bytes, at)] as number;
    const dmin = half[word(bytes, at + 2)] as number;
    for (let pair = 0; pair < 4; pair++) {
      const h = at + 16;
      const q = at + 48 + pair * 32;
      const to = o + pair * 64;
      const scale1 = d * scaleOf(bytes, at + 4, 2 * pair);
      const min1 = dmin * minOf(bytes, at + 4, 2 * pair);
      const scale2 = d * scaleOf(bytes, at + 4, 2 * pair + 1);
      const min2 = dmin * minOf(bytes, at + 4, 2 * pair + 1);
      for (let l = 0; l < 32; l++) {
        const both = bytes[q + l] as number;
        const fifth = (bytes[h + l] as number) >> (2 * pair);
        out[to + l] = scale1 * ((both & 15) | ((fifth & 1) << 4)) - min1;
        out[to + l + 32] = scale2 * ((both >> 4) | ((fifth & 2) << 3)) - min2;
      }
    }
  }
}

/** Q6_K, 210 bytes: 128 bytes of nibbles, 64 bytes of upper 2 bits, 16 signed scales, f16 d. */
function decodeQ6_K(bytes: Uint8Array, out: Float32Array): void {
  const half = halves();
  for (let at = 0, o = 0; o < out.length; at += 210, o += 256) {
    const d = half[word(bytes, at + 208)] as number;
    for (let part = 0; part < 4; part++) {
      // Two parts per half of the block, 16 columns each; a column holds four elements.
      const column = (part & 1) * 16;
      const q = at + (part >> 1) * 64 + column;
      const h = at + 128 + (part >> 1) * 32 + column;
      const to = o + (part >> 1) * 128 + column;
      const s = at + 192 + (part >> 1) * 8 + (part & 1);
      const scale1 = d * signed(bytes[s] as number);
      const scale2 = d * signed(bytes[s + 2] as number);
      const scale3 = d * signed(bytes[s + 4] as number);
      const scale4 = d * signed(bytes[s + 6] as number);
      for (let l = 0; l < 16; l++) {
        const a = bytes[q + l] as number;
        const b = bytes[q + l + 32] as number;
        const upper = bytes[h + l] as number;
        out[to + l] = scale1 * (((a & 15) | ((upper & 3) << 4)) - 32);
        out[to + l + 32] = scale2 * (((b & 15) | ((upper & 12) << 2)) - 32);
        out[to + l + 64] = scale3 * (((a >> 4) | (upper & 48)) - 32);
        out[to + l + 96] = scale4 * (((b >> 4) | ((upper & 192) >> 2)) - 32);
      }
    }
  }
}

/** Scale of sub-block j of Q3_K: low nibbles in 8 bytes, two upper bits each in 4 more. */
function scaleOfQ3(bytes: Uint8Array, at: number, j: number): number {
  const low = (bytes[at + (j & 7)] as number) >> ((j >> 3) * 4);
  const high = (bytes[at + 8 + (j & 3)] as number) >> ((j >> 2) * 2);
  return ((low & 15) | ((high & 3) << 4)) - 32;
}

/** Scale of sub-block j of Q4_K and Q5_K: four in the low 6 bits of 4 bytes, four scattered. */
function scaleOf(bytes: Uint8Array, at: number, j: number): number {
  if (j < 4) return (bytes[at + j] as number) & 63;
  return ((bytes[at + j + 4] as number) & 15) | (((bytes[at + j - 4] as number) >> 6) << 4);
}

/** Min of sub-block j of Q4_K and Q5_K. */
function minOf(bytes: Uint8Array, at: number, j: number): number {
  if (j < 4) return (bytes[at + j + 4] as number) & 63;
  return ((bytes[at + j + 4] as number) >> 4) | (((bytes[at + j] as number) >> 6) << 4);
}

function signed(byte: number): number {
  return (byte << 24) >> 24;
}

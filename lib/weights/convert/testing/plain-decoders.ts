/*
 * Decoders of every element type in plain TypeScript, one element after another as the formats are
 * described. The kernels are compared with them.
 */

type Decoder = (bytes: Uint8Array, out: Float32Array) => void;

/** By the type's name: writes whole blocks as f32; `out` has exactly their elements. */
export const plainDecoders: Readonly<Record<string, Decoder>> = {
  F16: blocks(1, 2, (block) => () => half(block, 0)),
  BF16: blocks(1, 2, (block) => () => f32Of(word(block, 0) << 16)),
  F8_E4M3: blocks(1, 1, (block) => () => e4m3(byte(block, 0))),
  F8_E5M2: blocks(1, 1, (block) => () => smallFloat(byte(block, 0), 5, 2)),
  U8: blocks(1, 1, (block) => () => byte(block, 0)),
  Q4_0: blocks(32, 18, q4_0),
  Q4_1: blocks(32, 20, q4_1),
  Q5_0: blocks(32, 22, q5_0),
  Q5_1: blocks(32, 24, q5_1),
  Q8_0: blocks(32, 34, q8_0),
  Q2_K: blocks(256, 84, q2_K),
  Q3_K: blocks(256, 110, q3_K),
  Q4_K: blocks(256, 144, q4_K),
  Q5_K: blocks(256, 176, q5_K),
  Q6_K: blocks(256, 210, q6_K),
};

/** Reads what a block's elements share, and gives the function of an element's place in the block. */
type BlockDecoder = (block: Uint8Array) => (i: number) => number;

function blocks(elements: number, size: number, decode: BlockDecoder): Decoder {
  return (bytes, out) => {
    for (let at = 0, o = 0; o < out.length; at += size, o += elements) {
      const value = decode(bytes.subarray(at, at + size));
      for (let i = 0; i < elements; i++) out[o + i] = value(i);
    }
  };
}

function byte(block: Uint8Array, at: number): number {
  return block[at] as number;
}

function signed(block: Uint8Array, at: number): number {
  return (byte(block, at) << 24) >> 24;
}

/** Little-endian 16 bits at any address. */
function word(block: Uint8Array, at: number): number {
  return byte(block, at) | (byte(block, at + 1) << 8);
}

function half(block: Uint8Array, at: number): number {
  return smallFloat(word(block, at), 5, 10);
}

/** The f32 of these 32 bits. */
function f32Of(bits: number): number {
  return new Float32Array(Int32Array.of(bits).buffer)[0] as number;
}

/**
 * An F8_E4M3 byte in the "fn" form that checkpoints use: no infinities, and NaN only where all bits but
 * the sign are ones, so that the largest value is 448.
 */
function e4m3(bits: number): number {
  const large = (bits & 0x78) === 0x78 && (bits & 7) < 7;
  const value = large ? (8 + (bits & 7)) * 32 : smallFloat(bits & 127, 4, 3);
  return bits & 128 ? -value : value;
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

/*
 * GGML's types of one scale per 32 elements; layouts as in ggml-quants.c (`dequantize_row_q4_0`, …).
 * The two nibbles of byte j are the elements j and j + 16. Every product of a scale and an integer is
 * exact in f32, so rounding happens once, when the sum is stored.
 */

/** Nibble of element i of 32, of 16 bytes from `at`. */
function nibble(block: Uint8Array, at: number, i: number): number {
  return (byte(block, at + (i & 15)) >> (i & 16 ? 4 : 0)) & 15;
}

/** The fifth bit of element i of 32, of 4 bytes from `at`, in its place. */
function fifthBit(block: Uint8Array, at: number, i: number): number {
  return ((byte(block, at + (i >> 3)) >> (i & 7)) & 1) << 4;
}

/** Q4_0, 18 bytes: f16 d, 16 bytes of nibbles; w = d·(q − 8). */
function q4_0(block: Uint8Array) {
  const d = half(block, 0);
  return (i: number) => d * (nibble(block, 2, i) - 8);
}

/** Q4_1, 20 bytes: f16 d, f16 m, 16 bytes of nibbles; w = d·q + m. */
function q4_1(block: Uint8Array) {
  const [d, m] = [half(block, 0), half(block, 2)];
  return (i: number) => d * nibble(block, 4, i) + m;
}

/** Q5_0, 22 bytes: f16 d, a fifth bit per element, 16 bytes of nibbles; w = d·(q − 16). */
function q5_0(block: Uint8Array) {
  const d = half(block, 0);
  return (i: number) => d * ((nibble(block, 6, i) | fifthBit(block, 2, i)) - 16);
}

/** Q5_1, 24 bytes: f16 d, f16 m, a fifth bit per element, 16 bytes of nibbles; w = d·q + m. */
function q5_1(block: Uint8Array) {
  const [d, m] = [half(block, 0), half(block, 2)];
  return (i: number) => d * (nibble(block, 8, i) | fifthBit(block, 4, i)) + m;
}

/** Q8_0, 34 bytes: f16 d, 32 signed bytes; w = d·q. */
function q8_0(block: Uint8Array) {
  const d = half(block, 0);
  return (i: number) => d * signed(block, 2 + i);
}

/*
 * GGML's K-quants: 256 elements share an f16 scale d (and often a second one, dmin, for offsets);
 * their sub-blocks of 16 or 32 have small integer scales. Layouts as in ggml-quants.c
 * (`dequantize_row_q2_K`, …). d·scale·q is exact in f32 (11 + 8 + 5 bits at most), so rounding happens
 * once, when the difference is stored.
 */

/** Two bits of element i of 256, of 64 bytes from `at`: a byte has those of elements 32 apart. */
function twoBits(block: Uint8Array, at: number, i: number): number {
  return (byte(block, at + 32 * (i >> 7) + (i & 31)) >> (2 * ((i >> 5) & 3))) & 3;
}

/** Nibble of element i of 256, of 128 bytes from `at`: a byte has those of elements 32 apart. */
function nibbleOf64(block: Uint8Array, at: number, i: number): number {
  return (byte(block, at + 32 * (i >> 6) + (i & 31)) >> (i & 32 ? 4 : 0)) & 15;
}

/** Q2_K, 84 bytes: 16 × (4-bit scale, 4-bit min), 64 bytes of 2 bits, f16 d, f16 dmin. */
function q2_K(block: Uint8Array) {
  const [d, dmin] = [half(block, 80), half(block, 82)];
  return (i: number) => {
    const scale = byte(block, i >> 4);
    return d * (scale & 15) * twoBits(block, 16, i) - dmin * (scale >> 4);
  };
}

/** Q3_K, 110 bytes: 32 bytes of third bits, 64 bytes of 2 bits, 16 × 6-bit scale in 12, f16 d. */
function q3_K(block: Uint8Array) {
  const d = half(block, 108);
  return (i: number) => {
    const third = (byte(block, i & 31) >> (i >> 5)) & 1;
    return d * scaleOfQ3(block, 96, i >> 4) * ((twoBits(block, 32, i) | (third << 2)) - 4);
  };
}

/** Q4_K, 144 bytes: f16 d, f16 dmin, 8 × (6-bit scale, 6-bit min) in 12, 128 bytes of nibbles. */
function q4_K(block: Uint8Array) {
  const [d, dmin] = [half(block, 0), half(block, 2)];
  return (i: number) =>
    d * scaleOf(block, 4, i >> 5) * nibbleOf64(block, 16, i) - dmin * minOf(block, 4, i >> 5);
}

/** Q5_K, 176 bytes: as Q4_K, with 32 bytes of fifth bits between scales and nibbles. */
function q5_K(block: Uint8Array) {
  const [d, dmin] = [half(block, 0), half(block, 2)];
  return (i: number) => {
    const fifth = (byte(block, 16 + (i & 31)) >> (i >> 5)) & 1;
    const q = nibbleOf64(block, 48, i) | (fifth << 4);
    return d * scaleOf(block, 4, i >> 5) * q - dmin * minOf(block, 4, i >> 5);
  };
}

/** Q6_K, 210 bytes: 128 bytes of nibbles, 64 bytes of upper 2 bits, 16 signed scales, f16 d. */
function q6_K(block: Uint8Array) {
  const d = half(block, 208);
  return (i: number) => {
    // A byte has the nibbles of elements 64 apart.
    const low = (byte(block, 64 * (i >> 7) + (i & 63)) >> (i & 64 ? 4 : 0)) & 15;
    return d * signed(block, 192 + (i >> 4)) * ((low | (twoBits(block, 128, i) << 4)) - 32);
  };
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

import { halves } from '../floats';

/*
 * GGML's types of one scale per 32 elements; layouts as in ggml-quants.c (`dequantize_row_q4_0`, …).
 * The two nibbles of byte j are the elements j and j + 16. Every product of a scale and an integer is
 * exact in f32, so rounding happens once, when the sum is stored.
 */

/** Q4_0, 18 bytes: f16 d, 16 bytes of nibbles; w = d·(q − 8). */
export function decodeQ4_0(bytes: Uint8Array, out: Float32Array): void {
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
export function decodeQ4_1(bytes: Uint8Array, out: Float32Array): void {
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
export function decodeQ5_0(bytes: Uint8Array, out: Float32Array): void {
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
export function decodeQ5_1(bytes: Uint8Array, out: Float32Array): void {
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
export function decodeQ8_0(bytes: Uint8Array, out: Float32Array): void {
  const half = halves();
  for (let at = 0, o = 0; o < out.length; at += 34, o += 32) {
    const d = half[word(bytes, at)] as number;
    for (let j = 0; j < 32; j++) out[o + j] = d * (((bytes[at + 2 + j] as number) << 24) >> 24);
  }
}

/** Little-endian 16 bits at any address. */
export function word(bytes: Uint8Array, at: number): number {
  return (bytes[at] as number) | ((bytes[at + 1] as number) << 8);
}

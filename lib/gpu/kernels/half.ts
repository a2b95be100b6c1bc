/** Rounds f32 to f16, to the nearest, ties to even; beyond ±65504 it clamps as the kernels do. @returns 16 bits each */
export function toHalf(values: ArrayLike<number>): Uint16Array<ArrayBuffer> {
  const [float] = [new Float32Array(1)];
  const bits = new Uint32Array(float.buffer);
  return Uint16Array.from(values, (value) => {
    float[0] = Math.max(-65504, Math.min(65504, value));
    const word = bits[0] ?? 0;
    const sign = (word >>> 16) & 0x8000;
    const magnitude = word & 0x7fffffff;
    // Below 2⁻¹⁴ an f16 has a fixed step of 2⁻²⁴.
    if (magnitude < 0x38800000) return sign | roundEven(Math.abs(float[0] ?? 0) * 2 ** 24);
    const rounded = magnitude - 0x38000000 + 0xfff + ((magnitude >>> 13) & 1);
    return sign | (rounded >>> 13);
  });
}

/** The f32 values of f16 bits. */
export function fromHalf(halves: ArrayLike<number>): Float32Array<ArrayBuffer> {
  return Float32Array.from(halves, (half) => {
    const sign = half & 0x8000 ? -1 : 1;
    const exponent = (half >>> 10) & 31;
    const fraction = half & 1023;
    if (exponent === 0) return sign * fraction * 2 ** -24;
    if (exponent === 31) return fraction ? Number.NaN : sign * Number.POSITIVE_INFINITY;
    return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
  });
}

/** Rounds f32 to bf16, its upper half, to the nearest, ties to even. @returns 16 bits each */
export function toBF16(values: Float32Array): Uint16Array<ArrayBuffer> {
  const words = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const halves = new Uint16Array(words.length);
  words.forEach((word, i) => {
    halves[i] = (word + 0x7fff + ((word >>> 16) & 1)) >>> 16;
  });
  return halves;
}

/** The f32 values of bf16 bits. */
export function fromBF16(halves: Uint16Array): Float32Array<ArrayBuffer> {
  return new Float32Array(Uint32Array.from(halves, (half) => half << 16).buffer);
}

function roundEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  return rest > 0.5 || (rest === 0.5 && floor % 2 === 1) ? floor + 1 : floor;
}

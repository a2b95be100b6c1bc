/** Bytes per element of the types a safetensors file may name. */
export const elementBytes: Readonly<Record<string, number>> = {
  F64: 8,
  F32: 4,
  F16: 2,
  BF16: 2,
  F8_E4M3: 1,
  F8_E5M2: 1,
  I64: 8,
  I32: 4,
  I16: 2,
  I8: 1,
  U64: 8,
  U32: 4,
  U16: 2,
  U8: 1,
  BOOL: 1,
};

let halfTable: Float32Array | undefined;

/** Value of every IEEE half, by its 16 bits. Built once: a table is much faster than arithmetic. */
export function halves(): Float32Array {
  halfTable ??= Float32Array.from({ length: 65_536 }, (_, bits) => smallFloat(bits, 5, 10));
  return halfTable;
}

/** Value of every F8_E5M2 byte: the upper byte of an IEEE half. */
export function e5m2Table(): Float32Array {
  return Float32Array.from({ length: 256 }, (_, bits) => smallFloat(bits, 5, 2));
}

/**
 * Value of every F8_E4M3 byte in the "fn" form that checkpoints use: no infinities, and NaN only where
 * all bits but the sign are ones, so that the largest value is 448.
 */
export function e4m3Table(): Float32Array {
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
export function decodeF16(bytes: Uint8Array, out: Float32Array): void {
  const source = words(bytes);
  const table = halves();
  for (let i = 0; i < source.length; i++) out[i] = table[source[i] as number] as number;
}

/** Writes BF16 elements, the upper halves of f32, as f32. */
export function decodeBF16(bytes: Uint8Array, out: Float32Array): void {
  const source = words(bytes);
  const bits = new Uint32Array(out.buffer, out.byteOffset, out.length);
  for (let i = 0; i < source.length; i++) bits[i] = (source[i] as number) << 16;
}

/** Writes F32 elements. */
export function decodeF32(bytes: Uint8Array, out: Float32Array): void {
  new Uint8Array(out.buffer, out.byteOffset, out.byteLength).set(bytes);
}

/** A decoder of elements of one byte by their values. */
export function byteDecoder(makeTable: () => Float32Array) {
  let table: Float32Array | undefined;
  return (bytes: Uint8Array, out: Float32Array): void => {
    table ??= makeTable();
    for (let i = 0; i < bytes.length; i++) out[i] = table[bytes[i] as number] as number;
  };
}

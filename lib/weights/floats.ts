import { KinoraError } from '../contract';

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
function halves(): Float32Array {
  if (halfTable) return halfTable;
  const table = new Float32Array(65_536);
  // Powers of two by doubling and halving: exact.
  const powers = new Float64Array(32); // 2^(e−25) for exponent field e
  powers[25] = 1;
  for (let e = 26; e < 32; e++) powers[e] = (powers[e - 1] ?? 0) * 2;
  for (let e = 24; e >= 0; e--) powers[e] = (powers[e + 1] ?? 0) / 2;
  for (let bits = 0; bits < 65_536; bits++) {
    const exponent = (bits >>> 10) & 31;
    const fraction = bits & 1023;
    let value: number;
    if (exponent === 31) value = fraction === 0 ? Number.POSITIVE_INFINITY : Number.NaN;
    else if (exponent === 0) value = fraction * (powers[1] ?? 0);
    else value = (1024 + fraction) * (powers[exponent] ?? 0);
    table[bits] = bits & 0x8000 ? -value : value;
  }
  halfTable = table;
  return table;
}

/**
 * Little-endian F32, F16 or BF16 elements as f32, and bytes (U8: images of golden files) as the
 * numbers 0 … 255. F32 bytes that own their buffer are not copied.
 *
 * @param name the tensor's name, for the message
 * @throws KinoraError `TENSOR_DTYPE` for any other element type
 */
export function toFloats(bytes: Uint8Array, dtype: string, name: string): Float32Array {
  if (dtype === 'F32') {
    const own = bytes.byteOffset % 4 === 0 ? bytes : bytes.slice();
    return new Float32Array(own.buffer, own.byteOffset, own.byteLength / 4);
  }
  if (dtype === 'U8') return Float32Array.from(bytes);
  if (dtype !== 'F16' && dtype !== 'BF16') {
    throw new KinoraError(
      'TENSOR_DTYPE',
      `${name} has the element type ${dtype}, which cannot be read as numbers of a weight.`,
    );
  }
  const own = bytes.byteOffset % 2 === 0 ? bytes : bytes.slice();
  const words = new Uint16Array(own.buffer, own.byteOffset, own.byteLength / 2);
  const floats = new Float32Array(words.length);
  if (dtype === 'BF16') {
    const bits = new Uint32Array(floats.buffer);
    for (let i = 0; i < words.length; i++) bits[i] = (words[i] as number) << 16;
  } else {
    const table = halves();
    for (let i = 0; i < words.length; i++) floats[i] = table[words[i] as number] as number;
  }
  return floats;
}

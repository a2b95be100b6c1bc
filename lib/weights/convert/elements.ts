import { KinoraError } from '../../contract';
import { type ElementType, elementTypes, type KnownType } from './element-types';
import {
  type BlockTarget,
  type Codec,
  type QuantisationError,
  writeCopied,
  writeFloats,
  writeQuantised,
} from './kernels';

/** Types that no weight is stored in; a single number of them, such as the alpha of a LoRA, is read all the same. */
const numberArrays = new Map(
  Object.entries({
    F64: Float64Array,
    I64: BigInt64Array,
    U64: BigUint64Array,
    I32: Int32Array,
    U32: Uint32Array,
    I16: Int16Array,
    U16: Uint16Array,
    I8: Int8Array,
  }),
);

/**
 * An element type by the name that safetensors or GGML gives it.
 *
 * @param tensor the tensor's name, for the message
 * @throws KinoraError `TENSOR_DTYPE` for a type whose elements cannot be read as floats
 */
export function elementType(dtype: string, tensor: string): KnownType & Codec {
  const type = elementTypes.get(dtype);
  if (type?.decoder !== undefined) return { ...type, decoder: type.decoder };
  throw new KinoraError(
    'TENSOR_DTYPE',
    `${tensor} has the element type ${dtype}, which cannot be read as numbers of a weight.`,
  );
}

/**
 * Elements of any {@link elementType} as f32, each rounded at most once; also of F64, and a single number of any
 * type. Bytes of images (U8) become 0 … 255. F32 bytes that own an aligned buffer are not copied.
 *
 * @param bytes whole blocks, little-endian
 * @param tensor the tensor's name, for the message
 * @throws KinoraError `TENSOR_DTYPE` for an unknown type, `MODEL_FILE_INVALID` for a broken block
 */
export function decodeElements(bytes: Uint8Array, dtype: string, tensor: string): Float32Array {
  const Numbers = numberArrays.get(dtype);
  if (Numbers && (dtype === 'F64' || bytes.length === Numbers.BYTES_PER_ELEMENT)) {
    return Float32Array.from<number | bigint>(new Numbers(bytes.slice().buffer), Number);
  }
  const codec = elementType(dtype, tensor);
  const elements = elementCount(bytes, codec, dtype, tensor);
  if (dtype === 'F32' && bytes.byteOffset % 4 === 0) {
    return new Float32Array(bytes.buffer, bytes.byteOffset, elements);
  }
  const floats = new Float32Array(elements);
  writeFloats(bytes, codec, floats);
  return floats;
}

/**
 * The factors of an fp8 tensor: one number, or one for each row.
 *
 * @throws KinoraError `MODEL_FILE_INVALID`
 */
export function scaleFactors(bytes: Uint8Array, dtype: string, tensor: string): Float32Array {
  const factors = decodeElements(bytes, dtype, tensor);
  if (factors.length > 0 && factors.every(Number.isFinite)) return factors;
  throw new KinoraError('MODEL_FILE_INVALID', `The scale of ${tensor} is not a finite number.`);
}

/** Elements times the factors of their rows, or times the only factor there is. */
export function scaled(data: Float32Array, factors: Float32Array): Float32Array {
  if (factors.length === 1 && factors[0] === 1) return data;
  const width = data.length / factors.length;
  return data.map((value, i) => value * (factors[Math.floor(i / width)] ?? Number.NaN));
}

function elementCount(bytes: Uint8Array, type: ElementType, dtype: string, tensor: string): number {
  const blocks = bytes.length / type.bytes;
  if (Number.isInteger(blocks)) return blocks * type.elements;
  throw new KinoraError(
    'MODEL_FILE_INVALID',
    `${tensor} has ${bytes.length} bytes, which are not whole ${dtype} blocks of ${type.bytes}.`,
  );
}

/**
 * Converts elements to `Blocks` of 32. Rows must be multiples of 32, so that blocks never cross
 * them. Q8_0 → 8 bits and Q4_0 → 4 bits keep every quant and scale; other types are quantised anew from
 * their exact values, as `quantiseBlocks` does.
 *
 * @param bytes whole blocks of the source type, any part of the tensor
 * @param target exactly as long as the elements need
 * @param tensor the tensor's name, for the message
 * @param factor multiplies every value: the `scale_weight` of an fp8 checkpoint
 * @throws KinoraError `TENSOR_DTYPE`; `MODEL_FILE_INVALID` for a broken block, NaN or infinity
 * @throws TypeError when the target is not as long as the elements need
 */
export function convertToBlocks(
  bytes: Uint8Array,
  dtype: string,
  bits: 8 | 4,
  target: BlockTarget,
  tensor: string,
  factor = 1,
): QuantisationError {
  const codec = elementType(dtype, tensor);
  elementCount(bytes, codec, dtype, tensor);
  const error =
    codec.sameBits === bits
      ? writeCopied(bytes, bits, target, factor)
      : writeQuantised(bytes, codec, bits, target, factor);
  if (Number.isFinite(error.squaredNorm)) return error;
  throw new KinoraError(
    'MODEL_FILE_INVALID',
    `The tensor ${tensor} holds a number that is NaN or infinite.`,
  );
}

/** Elements that share one scale; the only block size that ONNX Runtime runs fast at this length. */
export const blockSize = 32;
/** Byte that stands for zero: MatMulNBits stores unsigned values. */
export const zeroPoint = 128;

/** A matrix in symmetric 8-bit blocks, laid out as ONNX Runtime's `MatMulNBits` takes it. */
export interface Int8Blocks {
  /** [N, K/32, 32] bytes; value = (byte − 128) · scale. */
  readonly values: Uint8Array<ArrayBuffer>;
  /** [N, K/32]. */
  readonly scales: Float32Array<ArrayBuffer>;
}

/**
 * Quantises a matrix to 8 bits in blocks of 32 along its rows: scale = max|w| / 127 per block, as
 * GGML's Q8_0. The error of an element is at most half its block's scale.
 *
 * @param weight [N, K] row-major
 * @param rows N, the output features
 * @param columns K, the input features; a multiple of 32
 * @throws TypeError when K is no multiple of 32 or the lengths disagree
 * @throws RangeError when an element is NaN or infinite
 */
export function quantiseInt8Blocks(
  weight: Float32Array,
  rows: number,
  columns: number,
): Int8Blocks {
  checkColumns(columns);
  checkLength('weight', weight.length, rows * columns);
  const blocks = (rows * columns) / blockSize;
  const values = new Uint8Array(rows * columns);
  const scales = new Float32Array(blocks);
  for (let block = 0; block < blocks; block++) {
    const start = block * blockSize;
    const end = start + blockSize;
    let largest = 0;
    let sum = 0;
    for (let i = start; i < end; i++) {
      const magnitude = Math.abs(weight[i] as number);
      sum += magnitude;
      if (magnitude > largest) largest = magnitude;
    }
    // The sum, unlike the maximum, notices NaN as well. Finite f32 cannot overflow it.
    if (!(sum < Number.POSITIVE_INFINITY)) {
      throw new RangeError('A weight that is NaN or infinite cannot be quantised.');
    }
    scales[block] = largest / 127;
    const inverse = largest === 0 ? 0 : 127 / largest;
    // Adding ½ and cutting off rounds to nearest: the shifted value is never negative.
    for (let i = start; i < end; i++) {
      values[i] = ((weight[i] as number) * inverse + (zeroPoint + 0.5)) | 0;
    }
  }
  return { values, scales };
}

/**
 * The inverse of {@link quantiseInt8Blocks}: [N, K] in f32.
 *
 * @throws TypeError when K is no multiple of 32 or the lengths disagree
 */
export function dequantiseInt8Blocks(
  { values, scales }: Int8Blocks,
  rows: number,
  columns: number,
): Float32Array<ArrayBuffer> {
  checkColumns(columns);
  checkLength('values', values.length, rows * columns);
  checkLength('scales', scales.length, (rows * columns) / blockSize);
  const weight = new Float32Array(values.length);
  for (let block = 0; block < scales.length; block++) {
    const scale = scales[block] as number;
    const end = (block + 1) * blockSize;
    for (let i = block * blockSize; i < end; i++) {
      weight[i] = ((values[i] as number) - zeroPoint) * scale;
    }
  }
  return weight;
}

function checkColumns(columns: number): void {
  if (!Number.isInteger(columns) || columns <= 0 || columns % blockSize !== 0) {
    throw new TypeError(`${columns} columns are not a multiple of ${blockSize}.`);
  }
}

function checkLength(name: string, found: number, expected: number): void {
  if (found !== expected) {
    throw new TypeError(`${name} has ${found} elements, expected ${expected}.`);
  }
}

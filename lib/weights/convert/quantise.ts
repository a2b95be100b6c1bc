import { type Blocks, blockSize } from './blocks';
import { writeQuantised } from './kernels';

/** Byte that stands for zero: MatMulNBits stores unsigned values. */
const zeroPoint = 128;

const float32 = { elements: 1, bytes: 4, decoder: null } as const;

/**
 * Quantises a matrix to blocks of 32 along its rows.
 *
 * 8 bits: scale = max|w| / 127 per block, as GGML's Q8_0. The error of an element is at most half its block's scale.
 * 4 bits: integers −8 … 7 and the scale that suits them by least squares, the best of three attempts per block. The
 * extreme value of a block becomes about −8, so that a scale may be negative, as in GGML's Q4_0.
 *
 * @param weight [N, K] row-major
 * @param rows N, the output features
 * @param columns K, the input features; a multiple of 32
 * @throws TypeError when K is no multiple of 32 or the lengths disagree
 * @throws RangeError when an element is NaN or infinite
 */
export function quantiseBlocks(
  weight: Float32Array,
  rows: number,
  columns: number,
  bits: 8 | 4,
): Blocks {
  checkColumns(columns);
  checkLength('weight', weight.length, rows * columns);
  const values = new Uint8Array((weight.length * bits) / 8);
  const scales = new Float32Array(weight.length / blockSize);
  const bytes = new Uint8Array(weight.buffer, weight.byteOffset, weight.byteLength);
  const { squaredNorm } = writeQuantised(bytes, float32, bits, { values, scales });
  if (!Number.isFinite(squaredNorm)) {
    throw new RangeError('A weight that is NaN or infinite cannot be quantised.');
  }
  return { bits, values, scales };
}

/**
 * The values of blocks: [N, K] in f32.
 *
 * @throws TypeError when K is no multiple of 32 or the lengths disagree
 */
export function dequantiseBlocks(
  { bits, values, scales }: Blocks,
  rows: number,
  columns: number,
): Float32Array<ArrayBuffer> {
  checkColumns(columns);
  checkLength('values', values.length, (rows * columns * bits) / 8);
  checkLength('scales', scales.length, (rows * columns) / blockSize);
  const weight = new Float32Array(rows * columns);
  for (let i = 0; i < weight.length; i++) {
    const scale = scales[i >> 5] as number;
    if (bits === 8) weight[i] = ((values[i] as number) - zeroPoint) * scale;
    else weight[i] = ((((values[i >> 1] as number) >> (4 * (i & 1))) & 15) - 8) * scale;
  }
  return weight;
}

function checkColumns(columns: number): void {
  if (!Number.isInteger(columns) || columns <= 0 || columns % blockSize !== 0) {
    throw new TypeError(`${columns} columns are not a multiple of ${blockSize}.`);
  }
}

function checkLength(name: string, actual: number, expected: number): void {
  if (actual !== expected) {
    throw new TypeError(`${name} has ${actual} elements, expected ${expected}.`);
  }
}

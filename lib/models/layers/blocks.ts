import type { Precision } from '../../contract';
import {
  type Blocks,
  blockSize,
  dequantiseBlocks,
  quantiseInt4Blocks,
  quantiseInt8Blocks,
  type TensorData,
} from '../../weights';

/** Bits of a value in blocks; null for plain floats. */
export function bitsOf(precision: Precision): 8 | 4 | null {
  if (precision === 'f32') return null;
  return precision === 'int8' ? 8 : 4;
}

/** A tensor's content as f32. */
export function floatsOf(data: TensorData): Float32Array {
  // Blocks run on through the rows, so the shape does not matter.
  return data instanceof Float32Array
    ? data
    : dequantiseBlocks(data, data.scales.length, blockSize);
}

/**
 * A matrix in blocks.
 *
 * @throws RangeError when an element is NaN or infinite
 */
export function blocksFrom(
  weight: Float32Array,
  rows: number,
  columns: number,
  bits: 8 | 4,
): Blocks {
  const quantise = bits === 8 ? quantiseInt8Blocks : quantiseInt4Blocks;
  return quantise(weight, rows, columns);
}

/** The same blocks with so many bits: 4 to 8 is exact, 8 to 4 rounds. */
export function withBits(blocks: Blocks, bits: 8 | 4): Blocks {
  if (blocks.bits === bits) return blocks;
  if (bits === 4) return quantiseInt4Blocks(floatsOf(blocks), blocks.scales.length, blockSize);
  const values = new Uint8Array(2 * blocks.values.length);
  blocks.values.forEach((byte, i) => {
    values[2 * i] = (byte & 15) + 120;
    values[2 * i + 1] = (byte >> 4) + 120;
  });
  return { bits, values, scales: blocks.scales };
}

import type { Precision } from '../../../contract';
import { elementCount } from '../../../gpu';
import { type Blocks, blockSize, type Checkpoint } from '../../../weights';
import { bitsOf } from '../../layers/blocks';
import { precisionFor } from '../../layers/layer-data';
import { checkpointOfShapes } from '../../layers/shape-checkpoint';
import type { TensorShapes } from '../../layers/tensor-shapes';

/** Standard deviation of a byte whose values are all equally frequent. */
const byteDeviation = Math.sqrt((256 ** 2 - 1) / 12);

/**
 * A checkpoint of given shapes, filled with noise when it is read: weights of a real width without a
 * file. Linear weights come in blocks at once, as a store has them. The same name always has the same
 * content. Weights are scaled by 1/√(fan-in), so that activations neither grow nor vanish.
 */
export function syntheticCheckpoint(shapes: TensorShapes, precision: Precision): Checkpoint {
  const read = (name: string, shape: readonly number[]) =>
    noise(name, elementCount(shape), fanIn(shape));
  return checkpointOfShapes(shapes, {
    read,
    readLinear(name, rows, columns) {
      const bits = bitsOf(precisionFor(precision, columns));
      return bits === null ? read(name, [rows, columns]) : noiseBlocks(name, rows, columns, bits);
    },
    readRow: (name, row, width) => noise(`${name} ${row}`, width, 1),
  });
}

/** What sums up to one output: 1 for a norm or a bias. */
function fanIn(shape: readonly number[]): number {
  return shape.length > 1 ? elementCount(shape.slice(1)) : 1;
}

/** Uniform numbers with a deviation of 1/√fanIn. */
export function noise(name: string, count: number, fanIn: number): Float32Array<ArrayBuffer> {
  const bits = randomWords(name, count);
  const out = new Float32Array(bits.buffer);
  const half = 2 ** 31;
  const scale = Math.sqrt(3 / fanIn) / half;
  for (let i = 0; i < count; i++) out[i] = ((bits[i] as number) - half) * scale;
  return out;
}

/** Random weights in blocks of 32, with a deviation of 1/√columns. */
function noiseBlocks(name: string, rows: number, columns: number, bits: 8 | 4): Blocks {
  const count = (rows * columns * bits) / 8;
  const values = new Uint8Array(randomWords(name, Math.ceil(count / 4)).buffer, 0, count);
  const deviation = bits === 8 ? byteDeviation : Math.sqrt((16 ** 2 - 1) / 12);
  const scales = new Float32Array((rows * columns) / blockSize);
  scales.fill(1 / (deviation * Math.sqrt(columns)));
  return { bits, values, scales };
}

/** Marsaglia's xorshift32, seeded by a name (FNV-1a). */
function randomWords(name: string, count: number): Uint32Array<ArrayBuffer> {
  let state = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) {
    state = Math.imul(state ^ name.charCodeAt(i), 0x01000193);
  }
  state ||= 1;
  const words = new Uint32Array(count);
  for (let i = 0; i < count; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    words[i] = state;
  }
  return words;
}

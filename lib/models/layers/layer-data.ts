import { at, KinoraError, type Precision } from '../../contract';
import { elementCount } from '../../gpu';
import {
  type Blocks,
  blockSize,
  type Checkpoint,
  dequantiseBlocks,
  quantiseBlocks,
  type TensorData,
} from '../../weights';
import type { LoraBranches, LoraForm } from './lora';

/** Tensors on the CPU, in the form that is uploaded. */
export type LayerData = ReadonlyMap<string, TensorData>;

/** In which form weights are on the device: graphs and memory depend on it. */
export interface WeightForm {
  /** Precision of the weights of linear layers. */
  readonly precision: Precision;
  readonly lora?: LoraForm;
  /** Whether the factors of adapters are f32 in any case, as the runtime reads them. False when absent. */
  readonly plainFactors?: boolean;
}

/** How the tensors of a layer are read. */
export interface ReadOptions extends WeightForm {
  /** Adapters; their differences are added while reading. */
  readonly lora?: LoraBranches;
  /** Called with the stored size of each tensor that was read. */
  readonly onBytes?: (bytes: number) => void;
  readonly signal?: AbortSignal;
}

/** The precision a layer can have: blocks of 32 must fill the rows. */
export function precisionFor(preferred: Precision, inFeatures: number): Precision {
  return inFeatures % 32 === 0 ? preferred : 'f32';
}

/**
 * Reads a group of tensors together. Weights that are stored in blocks of the wanted precision are not
 * converted, unless a LoRA changes them.
 *
 * @param weights those of `names` that are weights of linear layers; the others come as f32
 * @throws KinoraError `MODEL_FILE_INVALID` where a weight is to be in blocks and is not finite; and as
 * the checkpoint's reads do
 */
export async function readLayer(
  checkpoint: Checkpoint,
  names: readonly string[],
  weights: ReadonlySet<string>,
  options: ReadOptions,
): Promise<LayerData> {
  options.signal?.throwIfAborted();
  const stored = await checkpoint.readStored(names);
  options.signal?.throwIfAborted();
  const data = new Map<string, TensorData>();
  for (const name of names) {
    const tensor = stored.get(name);
    if (!tensor) throw new KinoraError('TENSOR_MISSING', `The tensor ${name} was not read.`);
    options.onBytes?.(checkpoint.bytes(name));
    const precision = weights.has(name) ? options.precision : 'f32';
    const delta = options.lora?.deltas.get(name);
    data.set(name, convert(name, tensor, checkpoint.shape(name), precision, delta));
  }
  return data;
}

function convert(
  name: string,
  stored: TensorData,
  shape: readonly number[],
  preferred: Precision,
  delta: Float32Array | undefined,
): TensorData {
  const [rows, columns] = [at(shape, 0), elementCount(shape.slice(1))];
  const bits = bitsOf(precisionFor(preferred, columns));
  if (!(stored instanceof Float32Array) && bits !== null && !delta) return withBits(stored, bits);
  let values = floatsOf(stored);
  if (delta) {
    if (delta.length !== values.length) {
      throw new TypeError(`a difference of ${delta.length} values does not fit ${name}`);
    }
    values = values.map((value, i) => value + (delta[i] as number));
  }
  if (bits === null) return values;
  try {
    return quantiseBlocks(values, rows, columns, bits);
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause;
    const sentence = `The tensor ${name} holds a number that is NaN or infinite.`;
    throw new KinoraError('MODEL_FILE_INVALID', sentence, { cause });
  }
}

/**
 * Names that begin with a prefix, in the order of the checkpoint: so a store that keeps them side by
 * side reads them in one go.
 *
 * @param expected the tensors of the architecture
 */
export function namesUnder(
  checkpoint: Checkpoint,
  expected: ReadonlyMap<string, readonly number[]>,
  prefix: string,
): string[] {
  return [...checkpoint.names()].filter((name) => name.startsWith(prefix) && expected.has(name));
}

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

/** The same blocks with so many bits: 4 to 8 is exact, 8 to 4 rounds. */
function withBits(blocks: Blocks, bits: 8 | 4): Blocks {
  if (blocks.bits === bits) return blocks;
  if (bits === 4) return quantiseBlocks(floatsOf(blocks), blocks.scales.length, blockSize, bits);
  const values = new Uint8Array(2 * blocks.values.length);
  blocks.values.forEach((byte, i) => {
    values[2 * i] = (byte & 15) + 120;
    values[2 * i + 1] = (byte >> 4) + 120;
  });
  return { bits, values, scales: blocks.scales };
}

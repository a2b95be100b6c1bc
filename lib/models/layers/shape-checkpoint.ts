import type { Precision } from '../../contract';
import { elementCount } from '../../gpu';
import { type Checkpoint, readEach, type TensorData } from '../../weights';
import { bitsOf, precisionFor } from './layer-data';
import { shapeOfTensor, type TensorShapes } from './tensor-shapes';

/** The content of the tensors of a {@link checkpointOfShapes}. */
export interface Content {
  read(name: string, shape: readonly number[]): Float32Array;
  /** A linear weight [rows, columns] of one of the layers, in the form in which it is stored. */
  readLinear(name: string, rows: number, columns: number): TensorData;
  readRow(name: string, row: number, width: number): Float32Array;
}

/** A checkpoint of the right names and shapes without a file. */
export function checkpointOfShapes(shapes: TensorShapes, content: Content): Checkpoint {
  const shape = (name: string) => shapeOfTensor(shapes, name);
  const read = async (name: string) => content.read(name, shape(name));
  const readStored = async (name: string): Promise<TensorData> => {
    const [rows = 0, columns = 0] = shape(name);
    return isLayerLinear(name, shape(name)) ? content.readLinear(name, rows, columns) : read(name);
  };
  return {
    names: () => shapes.keys(),
    has: (name) => shapes.has(name),
    shape,
    bytes: (name) => 4 * elementCount(shape(name)),
    dtype: () => 'F32',
    read,
    readStored: (names) => readEach(names, readStored),
    readRows: async (name, rows) => {
      const width = elementCount(shape(name).slice(1));
      const out = new Float32Array(rows.length * width);
      for (const [i, row] of rows.entries()) out.set(content.readRow(name, row, width), i * width);
      return out;
    },
  };
}

function isLayerLinear(name: string, shape: readonly number[]): boolean {
  const weight = shape.length === 2 && /(^|\.)blocks?\.\d+\..*\.weight$/.test(name);
  return weight && !name.includes('relative_attention_bias');
}

/**
 * A checkpoint of the right names and shapes. The matrices of the layers have no content at all: they
 * would be large, and nothing looks at it.
 */
export function zeroCheckpoint(shapes: TensorShapes, precision: Precision): Checkpoint {
  return checkpointOfShapes(shapes, {
    read: (_, shape) => new Float32Array(elementCount(shape)),
    readLinear(_, __, columns) {
      const bits = bitsOf(precisionFor(precision, columns));
      if (bits === null) return new Float32Array(0);
      return { bits, values: new Uint8Array(0), scales: new Float32Array(0) };
    },
    readRow: (_, __, width) => new Float32Array(width),
  });
}

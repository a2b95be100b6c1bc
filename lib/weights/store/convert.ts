import { convertToBlocks, decodeElements, scaled } from '../convert/elements';
import type { BlockTarget } from '../convert/kernels';
import { rowsOf } from '../formats/rows';
import { type Place, rowRanges, type TensorRecipe } from './layout';

/** Memory for blocks that are converted, used again and again: fresh memory would take longer to get. */
export class BlockBuffer {
  #buffer = new ArrayBuffer(0);

  /** Memory for so many elements; valid until the next call. */
  take(elements: number, bits: 8 | 4): BlockTarget {
    const valueBytes = (elements * bits) / 8;
    const bytes = valueBytes + elements / 8;
    if (this.#buffer.byteLength < bytes) this.#buffer = new ArrayBuffer(bytes);
    return {
      values: new Uint8Array(this.#buffer, 0, valueBytes),
      scales: new Float32Array(this.#buffer, valueBytes, elements / 32),
    };
  }
}

/** A converted piece of a tensor. */
export interface Converted {
  /** Bytes and their places in the pack: elements, and scales where there are any. */
  readonly regions: readonly { readonly at: number; readonly bytes: Uint8Array }[];
  /** Σ (stored − source)² and Σ source²; both 0 where nothing was rounded. */
  readonly squaredError: number;
  readonly squaredNorm: number;
}

/** Some rows of a source tensor. */
export interface SourceRows {
  readonly bytes: Uint8Array;
  readonly dtype: string;
  readonly firstRow: number;
  readonly rows: number;
  /** Multiply the tensor's elements: one number, or one for each of its rows. */
  readonly factors: Float32Array;
}

/**
 * Converts rows of a tensor into the form in which the store keeps them.
 *
 * @param buffer where blocks are written; the result's bytes may lie in it or in the source
 * @throws KinoraError `TENSOR_DTYPE`; `MODEL_FILE_INVALID` for NaN, infinity or a broken block
 */
export function convertRows(
  place: Place,
  recipe: TensorRecipe,
  source: SourceRows,
  buffer: BlockBuffer,
): Converted {
  const { encoding } = place;
  const { dtype, firstRow, rows, factors } = source;
  if (recipe.reorder) return exact(place.offset, reordered(place, recipe, source));
  const { elements, scales } = rowRanges(place, firstRow, rows);
  if (encoding === 'int8' || encoding === 'int4') {
    const count = rows * rowsOf(place.shape).width;
    const bits = encoding === 'int8' ? 8 : 4;
    const target = buffer.take(count, bits);
    const error =
      factors.length === 1
        ? convertToBlocks(source.bytes, dtype, bits, target, recipe.name, factors[0])
        : convertToBlocks(bytesOf(floats(recipe.name, source)), 'F32', bits, target, recipe.name);
    const regions = [{ at: elements[0], bytes: target.values }];
    if (scales) regions.push({ at: scales[0], bytes: bytesOf(target.scales) });
    return { regions, ...error };
  }
  const unscaled = factors.length === 1 && factors[0] === 1;
  if (encoding === dtype && unscaled) return exact(elements[0], source.bytes);
  return exact(elements[0], bytesOf(floats(recipe.name, source)));
}

/** All elements of a reordered tensor, in their new order. */
function reordered(place: Place, recipe: TensorRecipe, source: SourceRows): Uint8Array {
  const apply = recipe.reorder?.apply ?? ((data: Float32Array) => data);
  if (place.encoding === 'F32') return bytesOf(apply(floats(recipe.name, source)));
  // A new order of 16-bit elements is one of their bit patterns, which are exact as f32.
  const { bytes } = source;
  const words = new Uint16Array(bytes.slice().buffer);
  return bytesOf(new Uint16Array(apply(new Float32Array(words))));
}

function floats(tensor: string, source: SourceRows): Float32Array {
  const { factors, firstRow, rows } = source;
  const data = decodeElements(source.bytes, source.dtype, tensor);
  return scaled(data, factors.length > 1 ? factors.subarray(firstRow, firstRow + rows) : factors);
}

function exact(at: number, bytes: Uint8Array): Converted {
  return { regions: [{ at, bytes }], squaredError: 0, squaredNorm: 0 };
}

function bytesOf(view: Float32Array | Uint16Array): Uint8Array {
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
}

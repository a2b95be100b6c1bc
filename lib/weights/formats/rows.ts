import { KinoraError } from '../../contract';
import { decodeElements, elementType } from '../convert/elements';
import type { TensorEntry } from './safetensors';
import type { WeightFile } from './source';

/** A tensor as a matrix: slices along its first dimension. A scalar is one row. */
export function rowsOf(shape: readonly number[]): { rows: number; width: number } {
  const [rows = 1, ...rest] = shape;
  return { rows, width: rest.reduce((product, n) => product * n, 1) };
}

/**
 * Some rows (slices along the first dimension) of a tensor as f32, in the order asked for, repeats
 * included. Only these rows are read, neighbours together.
 *
 * @param readRun reads `count` rows from `first` on
 * @returns [rows.length, …]
 * @throws RangeError for a row that the tensor does not have
 */
export async function gatherRows(
  name: string,
  shape: readonly number[],
  rows: readonly number[],
  readRun: (first: number, count: number) => Promise<Float32Array>,
): Promise<Float32Array> {
  const { rows: rowCount, width } = rowsOf(shape);
  const wrong = rows.find((row) => !Number.isInteger(row) || row < 0 || row >= rowCount);
  if (wrong !== undefined) throw new RangeError(`${name} [${shape}] has no row ${wrong}.`);
  const gathered = new Float32Array(rows.length * width); // [rows, width]
  for (const { first, count } of runsOf(rows)) {
    const floats = await readRun(first, count);
    for (const [i, row] of rows.entries()) {
      const at = (row - first) * width;
      if (row < first || row >= first + count) continue;
      gathered.set(floats.subarray(at, at + width), i * width);
    }
  }
  return gathered;
}

/**
 * {@link gatherRows} of a file.
 *
 * @throws KinoraError `TENSOR_DTYPE` when blocks of its type run across the rows
 */
export async function readTensorRows(
  file: WeightFile,
  { shape, dtype, start }: TensorEntry,
  name: string,
  rows: readonly number[],
): Promise<Float32Array> {
  const { width } = rowsOf(shape);
  const { elements, bytes } = elementType(dtype, name);
  if (width % elements !== 0) {
    throw new KinoraError(
      'TENSOR_DTYPE',
      `${name} has rows of ${width}, which are no whole blocks of ${elements} in ${dtype}.`,
    );
  }
  const rowBytes = (width / elements) * bytes;
  return gatherRows(name, shape, rows, async (first, count) => {
    const from = start + first * rowBytes;
    return decodeElements(await file.read(from, from + count * rowBytes), dtype, name);
  });
}

/** Distinct rows as runs of neighbours. */
function runsOf(rows: readonly number[]): { first: number; count: number }[] {
  const runs: { first: number; count: number }[] = [];
  for (const row of [...new Set(rows)].sort((a, b) => a - b)) {
    const last = runs.at(-1);
    if (last && last.first + last.count === row) last.count++;
    else runs.push({ first: row, count: 1 });
  }
  return runs;
}

import { KinoraError } from '../../contract';
import { decodeElements, elementType } from '../convert/elements';
import type { TensorEntry } from './safetensors';
import type { WeightFile } from './source';

/** Requests for rows in flight at once. */
const rowRequests = 8;

/**
 * Some rows (slices along the first dimension) of a tensor as f32, in the order asked for, repeats
 * included. Only these rows are fetched, neighbours in one request.
 *
 * @returns [rows.length, …]
 * @throws RangeError for a row that the tensor does not have
 * @throws KinoraError `TENSOR_DTYPE` when blocks of its type run across the rows
 */
export async function readTensorRows(
  file: WeightFile,
  entry: TensorEntry,
  name: string,
  rows: readonly number[],
): Promise<Float32Array> {
  const [rowCount = 0, ...rest] = entry.shape;
  const width = rest.reduce((product, n) => product * n, 1);
  for (const row of rows) {
    if (!Number.isInteger(row) || row < 0 || row >= rowCount) {
      throw new RangeError(`${name} [${entry.shape}] has no row ${row}.`);
    }
  }
  const { elements, bytes: blockBytes } = elementType(entry.dtype, name);
  if (width % elements !== 0) {
    throw new KinoraError(
      'TENSOR_DTYPE',
      `${name} has rows of ${width}, which are no whole blocks of ${elements} in ${entry.dtype}.`,
    );
  }
  const rowBytes = (width / elements) * blockBytes;
  const runs = runsOf(rows);
  const floatsOf = new Map<number, Float32Array>();
  let next = 0;
  async function work(): Promise<void> {
    for (let run = runs[next++]; run; run = runs[next++]) {
      const start = entry.start + run.first * rowBytes;
      const bytes = await file.read(start, start + run.count * rowBytes);
      const floats = decodeElements(bytes, entry.dtype, name);
      for (let i = 0; i < run.count; i++) {
        floatsOf.set(run.first + i, floats.subarray(i * width, (i + 1) * width));
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(rowRequests, runs.length) }, work));

  const gathered = new Float32Array(rows.length * width); // [rows, width]
  for (const [i, row] of rows.entries()) {
    const floats = floatsOf.get(row);
    if (!floats) throw new TypeError(`row ${row} of ${name} was not read`);
    gathered.set(floats, i * width);
  }
  return gathered;
}

/** Distinct rows as runs of neighbours. */
export function runsOf(rows: readonly number[]): { first: number; count: number }[] {
  const runs: { first: number; count: number }[] = [];
  for (const row of [...new Set(rows)].sort((a, b) => a - b)) {
    const last = runs.at(-1);
    if (last && last.first + last.count === row) last.count++;
    else runs.push({ first: row, count: 1 });
  }
  return runs;
}

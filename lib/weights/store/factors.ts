import { at } from '../../contract';
import { scaleFactors } from '../convert/elements';
import type { TensorLocation } from '../formats/located';
import type { WeightFile } from '../formats/source';
import type { Conversion } from './units';

/** Scales that lie this close to each other are read in one request. */
const gapBytes = 64 * 1024;

/**
 * What each tensor is multiplied by, by index: 1 but for scaled fp8, which has one number or one for each row.
 * They may lie anywhere in the files, so they are read beforehand.
 *
 * @throws KinoraError `MODEL_FILE_INVALID`
 */
export async function readFactors(
  conversions: readonly Conversion[],
): Promise<readonly Float32Array[]> {
  const factors = conversions.map((): Float32Array => new Float32Array([1]));
  const scales = conversions.flatMap(({ located }, tensor) =>
    located.scale ? [{ tensor, name: located.storedName, ...located.scale }] : [],
  );
  const files = new Set(scales.map(({ file }) => file));
  for (const file of files) {
    const own = scales
      .filter((scale) => scale.file === file)
      .sort((a, b) => a.entry.start - b.entry.start);
    for (const group of neighbours(own)) {
      const { bytes, start } = await readGroup(file, group);
      for (const { tensor, name, entry } of group) {
        const part = bytes.slice(entry.start - start, entry.end - start);
        factors[tensor] = scaleFactors(part, entry.dtype, name);
      }
    }
  }
  return factors;
}

function neighbours<T extends TensorLocation>(sorted: readonly T[]): T[][] {
  const groups: T[][] = [];
  for (const item of sorted) {
    const group = groups.at(-1);
    const end = group?.at(-1)?.entry.end ?? Number.NEGATIVE_INFINITY;
    if (group && item.entry.start - end <= gapBytes) group.push(item);
    else groups.push([item]);
  }
  return groups;
}

async function readGroup(file: WeightFile, group: readonly TensorLocation[]) {
  const { start } = at(group, 0).entry;
  const bytes = await file.read(start, at(group, group.length - 1).entry.end);
  return { bytes, start };
}

/**
 * The wanted shape where a GGUF file has the same elements in fewer dimensions: GGML drops leading
 * dimensions of one (`[1,6,3072]` becomes `[6,3072]`), and has four at most, so that some converters
 * join neighbours of a five-dimensional kernel. The order of the elements is the same.
 *
 * @returns null where the file's shape stands as it is
 */
export function restoredShape(
  found: readonly number[],
  wanted: readonly number[],
): readonly number[] | null {
  if (same(found, wanted)) return null;
  if (same(withoutOnes(found), withoutOnes(wanted))) return wanted;
  const joined = wanted.length > 4 && found.length <= 4 && isJoined(found, wanted);
  return joined ? wanted : null;
}

const withoutOnes = (shape: readonly number[]) => shape.filter((n) => n !== 1);

/** Whether `found` is `wanted` with some neighbouring dimensions multiplied. */
function isJoined(found: readonly number[], wanted: readonly number[]): boolean {
  let axis = 0;
  for (const size of found) {
    let product = 1;
    while (product < size && axis < wanted.length) product *= wanted[axis++] ?? 1;
    if (product !== size) return false;
  }
  return wanted.slice(axis).every((n) => n === 1);
}

/** Whether two shapes are equal. */
export function same(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((n, axis) => n === b[axis]);
}

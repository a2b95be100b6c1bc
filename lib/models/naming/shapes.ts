/**
 * The wanted shape where a file has the same elements in fewer dimensions: GGML drops leading dimensions
 * of one (`[1,6,3072]` becomes `[6,3072]`), and has four at most, so that some converters join neighbours
 * of a five-dimensional kernel; others keep the patch embedding as a linear layer. The order of the
 * elements is the same.
 *
 * @returns null where the file's shape stands as it is
 */
export function restoredShape(
  stored: readonly number[],
  expected: readonly number[],
): readonly number[] | null {
  if (same(stored, expected)) return null;
  if (same(withoutOnes(stored), withoutOnes(expected))) return expected;
  const joined = expected.length > 4 && stored.length <= 4 && isJoined(stored, expected);
  return joined ? expected : null;
}

const withoutOnes = (shape: readonly number[]) => shape.filter((n) => n !== 1);

/** Whether `stored` is `expected` with some neighbouring dimensions multiplied. */
function isJoined(stored: readonly number[], expected: readonly number[]): boolean {
  let axis = 0;
  for (const size of stored) {
    let product = 1;
    while (product < size && axis < expected.length) product *= expected[axis++] ?? 1;
    if (product !== size) return false;
  }
  return expected.slice(axis).every((n) => n === 1);
}

/** Whether two shapes are equal. */
export function same(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((n, axis) => n === b[axis]);
}

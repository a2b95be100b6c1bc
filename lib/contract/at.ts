/**
 * The element of an array at an index that the caller knows to be there.
 *
 * @throws RangeError where there is none
 */
export function at<T>(values: ArrayLike<T>, index: number): T {
  const value = values[index];
  if (value === undefined) {
    throw new RangeError(`Index ${index} is outside of an array of ${values.length} elements.`);
  }
  return value;
}

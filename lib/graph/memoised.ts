/** Makes a value once for equal plain arguments, which are compared by their JSON. */
export function memoised<A extends readonly unknown[], T>(make: (...of: A) => T): (...of: A) => T {
  const known = new Map<string, { readonly value: T }>();
  return (...of) => {
    const key = JSON.stringify(of);
    const entry = known.get(key) ?? { value: make(...of) };
    known.set(key, entry);
    return entry.value;
  };
}

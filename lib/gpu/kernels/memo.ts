/** Makes a value once for equal plain arguments: they are compared by their JSON. */
export function memoised<A extends readonly unknown[], R>(make: (...given: A) => R) {
  const made = new Map<string, R>();
  return (...given: A): R => {
    const key = JSON.stringify(given);
    const known = made.get(key);
    if (known !== undefined) return known;
    const value = make(...given);
    made.set(key, value);
    return value;
  };
}

/** Builds each graph once per distinct arguments, which are compared by their JSON. */
export function memoised<A extends readonly unknown[], T>(build: (...of: A) => T): (...of: A) => T {
  const known = new Map<string, T>();
  return (...of) => {
    const key = JSON.stringify(of);
    const graph = known.get(key) ?? build(...of);
    known.set(key, graph);
    return graph;
  };
}

import type { Graph } from '../../onnx';

/** Builds each graph once per distinct arguments, which are compared by their JSON. */
export function memoised<A extends readonly unknown[]>(
  build: (...of: A) => Graph,
): (...of: A) => Graph {
  const known = new Map<string, Graph>();
  return (...of) => {
    const key = JSON.stringify(of);
    const graph = known.get(key) ?? build(...of);
    known.set(key, graph);
    return graph;
  };
}

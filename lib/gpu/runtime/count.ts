import type { Graph } from '../../graph';
import type * as onnx from '../../onnx';
import { type GraphSizes, placeholder, placeholderBindings } from '../compiler/placeholders';
import type { CountingBackend } from '../counting-backend';
import { runtimeSize } from '../parts';
import type { RuntimeExecutor } from './executor';

/** Lets the counting backend of an executor take what graphs need beside the tensors that are bound to them. */
export async function countGraphs(
  executor: RuntimeExecutor,
  graphs: Iterable<Graph>,
  of: GraphSizes,
): Promise<void> {
  for (const graph of graphs) {
    for (const bound of placeholderBindings(graph, of)) await executor.run(graph, bound, of.chunks);
  }
}

/** As {@link countGraphs}, for a graph of the runtime and its sizes by name. */
export async function countOnnxGraph(
  backend: CountingBackend,
  graph: onnx.Graph,
  sizes: Readonly<Record<string, number>>,
): Promise<void> {
  const symbols = new Map(Object.entries(sizes));
  const bind = (ports: onnx.Graph['inputs']) =>
    Object.fromEntries(
      ports.map(({ name, dtype, dims }) => {
        return [
          name,
          placeholder(
            dtype,
            dims.map((dim) => runtimeSize(dim, symbols)),
          ),
        ];
      }),
    );
  await backend.run(graph, bind(graph.inputs), bind(graph.outputs));
}

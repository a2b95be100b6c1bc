import type { Graph } from '../../graph';
import { type GraphSizes, placeholderBindings } from '../compiler/placeholders';
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

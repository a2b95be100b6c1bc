import { type Dim, type Graph, type LinearLayer, tokenRows } from '../../graph';
import type { ElementType } from '../../onnx';
import { tensorBytes } from '../backend';
import {
  type Bound,
  classesOfChunks,
  type GraphBindings,
  type RowChunk,
  tokensOfChunks,
} from '../executor';
import type { RuntimeExecutor } from '../runtime/executor';
import type { DeviceTensor } from '../tensor';

/** What graphs are run on, in numbers. */
export interface GraphSizes {
  /** All rows of the clip; a run may have some of them. */
  readonly chunks: readonly RowChunk[];
  /** Most rows by the names of other sizes. */
  readonly sizes: Readonly<Record<string, number>>;
  /** Names of inputs that have a tensor for each class of tokens. */
  readonly classed: ReadonlySet<string>;
  /** Ranks that a layer's LoRA may have, by the layer's name. */
  readonly ranks: ReadonlyMap<string, readonly number[]>;
}

/** A tensor that has sizes only. */
export function placeholder<T extends ElementType>(
  dtype: T,
  dims: readonly number[],
): DeviceTensor<T> {
  const dispose = () => undefined;
  const bytes = tensorBytes(dtype, dims);
  return { dtype, dims, bytes, category: 'activations', disposed: false, dispose };
}

/** Tensors of sizes only for a graph, one set for each of the ranks that the LoRA of a layer may have. */
export function placeholderBindings(graph: Graph, options: GraphSizes): GraphBindings[] {
  const { chunks, sizes, classed, ranks } = options;
  const tokens = tokensOfChunks(chunks);
  const sizeOf = (dim: Dim) => {
    if (typeof dim === 'number') return dim;
    return dim === tokenRows ? tokens : (sizes[dim] ?? 1);
  };
  const float32 = (...dims: readonly Dim[]) => placeholder('float32', dims.map(sizeOf));
  const classes = classesOfChunks(chunks);
  const common: Record<string, Bound> = {};
  const layers: LinearLayer[] = [];
  for (const { call, dims } of graph.values) {
    if (call.op === 'input') {
      common[call.name] = classed.has(call.name)
        ? Array.from({ length: classes }, () => float32(...dims))
        : float32(...dims);
    }
    if (call.op === 'attention' && call.lastBias !== null) common[call.lastBias] = 0;
    if (call.op === 'weightedSum') {
      for (const coefficient of call.coefficients) {
        if (typeof coefficient === 'string') common[coefficient] = 0;
      }
    }
    if (call.op === 'linear') layers.push(call.layer);
  }
  for (const [name, { dims }] of graph.outputs) common[name] = float32(...dims);
  for (const { name, inFeatures: k, outFeatures: n, bits, bias } of layers) {
    if (bits === null) common[`${name}.weight`] = float32(n, k);
    else {
      common[`${name}.values`] = placeholder('uint8', [n, k / 32, 4 * bits]);
      common[`${name}.scales`] = float32(n, k / 32);
    }
    if (bias) common[`${name}.bias`] = float32(n);
  }

  const adapted = layers.filter(({ lora }) => lora);
  const ranksOf = ({ name }: LinearLayer) => ranks.get(name) ?? [];
  const variants = Math.max(1, ...adapted.map((layer) => ranksOf(layer).length));
  return Array.from({ length: variants }, (_, variant) => ({
    ...common,
    ...Object.fromEntries(
      adapted.flatMap((layer) => {
        const { name, inFeatures, outFeatures, lora } = layer;
        const dtype = lora === 'bf16' ? 'float16' : 'float32';
        const rank = ranksOf(layer)[variant] ?? ranksOf(layer)[0] ?? 0;
        return [
          [`${name}.down`, placeholder(dtype, [rank, inFeatures])],
          [`${name}.up`, placeholder(dtype, [outFeatures, rank])],
        ];
      }),
    ),
  }));
}

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

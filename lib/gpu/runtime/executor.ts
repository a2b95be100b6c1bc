import { cut, type Graph, hasTokenRows, tokenRows, type Value } from '../../graph';
import type { Backend } from '../backend';
import { elementCount } from '../backend';
import {
  BoundGraph,
  type Executor,
  type GraphBindings,
  type RowChunk,
  type RowTensor,
  tokensOfChunks,
} from '../executor';
import { TensorPool } from '../pool';
import type { DeviceTensor } from '../tensor';
import { emit, type PassGraph, portOf, type Source } from './emit';

type Tensor = DeviceTensor<'float32'>;

/**
 * Runs graphs by ONNX Runtime, in f32: each pass is one session, which serves all graphs that are alike. It is the
 * reference of the kernels, and computes what they do not.
 *
 * What passes store for each other, and chunks of rows where the runtime knows no offsets, are tensors of a pool,
 * which the next run uses again.
 */
export class RuntimeExecutor implements Executor {
  readonly #pool: TensorPool;
  /** By graph and names of its classed inputs. */
  readonly #passes = new Map<Graph, Map<string, readonly PassGraph[]>>();
  /** By rows, keys and number. */
  readonly #lastBiases = new Map<string, Tensor>();
  /** Numbers that callers bind, by name; each run writes its own. */
  readonly #numbers = new Map<string, Tensor>();

  constructor(readonly backend: Backend) {
    this.#pool = new TensorPool(backend, 'activations');
  }

  async run(
    graph: Graph,
    bindings: GraphBindings,
    chunks: readonly RowChunk[] = [],
  ): Promise<void> {
    const kept = { pool: this.#pool, lastBiases: this.#lastBiases, numbers: this.#numbers };
    const run = new Run(this.backend, kept, graph, bindings, chunks);
    try {
      for (const pass of this.#passesOf(graph, bindings)) await run.pass(pass);
    } finally {
      run.end();
    }
  }

  /** The runtime counts nothing. */
  async finish(): Promise<void> {}

  dispose(): void {
    for (const known of [this.#lastBiases, this.#numbers]) {
      for (const tensor of known.values()) tensor.dispose();
      known.clear();
    }
    this.#pool.dispose();
  }

  #passesOf(graph: Graph, bindings: GraphBindings): readonly PassGraph[] {
    const classed = Object.entries(bindings).flatMap(([name, bound]) =>
      Array.isArray(bound) ? [name] : [],
    );
    const ofGraph = this.#passes.get(graph) ?? new Map<string, readonly PassGraph[]>();
    this.#passes.set(graph, ofGraph);
    const key = classed.join();
    const known = ofGraph.get(key);
    if (known) return known;
    const passes = cut(graph, new Set(classed)).map((pass, index) =>
      emit(graph, pass, `${graph.name}/${index}`),
    );
    ofGraph.set(key, passes);
    return passes;
  }
}

/** What runs of an executor share. */
interface Kept {
  readonly pool: TensorPool;
  readonly lastBiases: Map<string, Tensor>;
  readonly numbers: Map<string, Tensor>;
}

/** One run of a graph. */
class Run {
  /** What earlier passes have stored: one tensor, or one for each class. */
  readonly #stored = new Map<Value, readonly Tensor[]>();
  /** Names under which the tensors of results are bound. */
  readonly #outputs = new Map<Value, string>();
  readonly #bound: BoundGraph;
  readonly #classes: readonly number[];
  /** Tokens of the clip. */
  readonly #tokens: number;

  constructor(
    readonly backend: Backend,
    readonly kept: Kept,
    readonly graph: Graph,
    bindings: GraphBindings,
    readonly chunks: readonly RowChunk[],
  ) {
    this.#bound = new BoundGraph(graph, bindings);
    for (const [name, { value }] of graph.outputs) this.#outputs.set(value, name);
    for (const [{ call }, value] of graph.updates) {
      if (call.op === 'input') this.#outputs.set(value, call.name);
    }
    this.#classes = [...new Set(chunks.map((chunk) => chunk.class))];
    this.#tokens = tokensOfChunks(chunks);
  }

  async pass({ pass, graph, sources }: PassGraph): Promise<void> {
    const of = pass.kind === 'rows' ? this.chunks : pass.kind === 'class' ? this.#classes : [0];
    for (const each of of) {
      const chunk = typeof each === 'number' ? { start: 0, count: 0, class: each } : each;
      const pieces: Tensor[] = [];
      const after: (() => void)[] = [];
      const inputs = Object.fromEntries(
        [...sources].map(([port, source]) => [port, this.#input(source, chunk, pieces)]),
      );
      const outputs = Object.fromEntries(
        pass.results.map((value) => [
          portOf(value),
          this.#output(value, pass.kind === 'class', chunk, pieces, after),
        ]),
      );
      await this.backend.run(graph, inputs, outputs);
      for (const copy of after) copy();
      // Work keeps its order: what comes next may overwrite the pieces.
      this.kept.pool.give(...pieces);
    }
  }

  end(): void {
    for (const tensors of this.#stored.values()) this.kept.pool.give(...tensors);
    this.#stored.clear();
  }

  #input(source: Source, chunk: RowChunk, pieces: Tensor[]): DeviceTensor {
    switch (source.kind) {
      case 'bound':
        return this.#bound.tensor(source.name, chunk.class);
      case 'rows':
        return this.#readRows(this.#bound.rows(source.name), chunk, pieces);
      case 'stored':
        return this.#storedOf(source.value, chunk);
      case 'storedRows':
        return this.#readRows(
          { tensor: this.#storedOf(source.value, chunk), first: 0 },
          chunk,
          pieces,
        );
      case 'number':
        return this.#number(source.name);
      case 'lastBias':
        return this.#lastBias(source, chunk);
    }
  }

  #number(name: string): Tensor {
    const { numbers } = this.kept;
    const tensor = numbers.get(name) ?? this.backend.tensor('float32', [1], 'activations');
    numbers.set(name, tensor);
    this.backend.write(tensor, Float32Array.of(this.#bound.number(name)));
    return tensor;
  }

  #storedOf(value: Value, chunk: RowChunk): Tensor {
    const tensors = this.#stored.get(value);
    const tensor = tensors?.[tensors.length > 1 ? chunk.class : 0];
    if (!tensor) throw new TypeError(`${this.graph.name}: ${value.call.op} was not computed`);
    return tensor;
  }

  /** The rows of a chunk: a view, or a copy where the runtime knows no offsets. */
  #readRows({ tensor, first }: RowTensor, chunk: RowChunk, pieces: Tensor[]): DeviceTensor {
    const from = chunk.start - first;
    const view = this.backend.rows(tensor, from, chunk.count);
    if (view) return view;
    const piece = this.#piece(tensor, chunk, pieces);
    const width = elementCount(tensor.dims.slice(1));
    this.backend.copy(tensor, from * width, piece, 0, chunk.count * width);
    return piece;
  }

  #output(
    value: Value,
    ofClass: boolean,
    chunk: RowChunk,
    pieces: Tensor[],
    after: (() => void)[],
  ): DeviceTensor {
    const name = this.#outputs.get(value);
    if (!hasTokenRows(value)) {
      return name === undefined
        ? this.#store(value, ofClass, chunk)
        : this.#bound.tensor(name, chunk.class);
    }
    const target =
      name === undefined
        ? { tensor: this.#store(value, false, chunk), first: 0 }
        : this.#bound.rows(name);
    const to = chunk.start - target.first;
    const view = this.backend.rows(target.tensor, to, chunk.count);
    if (view) return view;
    const piece = this.#piece(target.tensor, chunk, pieces);
    const width = elementCount(target.tensor.dims.slice(1));
    after.push(() => this.backend.copy(piece, 0, target.tensor, to * width, chunk.count * width));
    return piece;
  }

  #piece({ dims }: DeviceTensor, { count }: RowChunk, pieces: Tensor[]): Tensor {
    const piece = this.kept.pool.take([count, ...dims.slice(1)]);
    pieces.push(piece);
    return piece;
  }

  /** The tensor of a value between passes, which is taken from the pool the first time. */
  #store(value: Value, ofClass: boolean, chunk: RowChunk): Tensor {
    const known = this.#stored.get(value);
    if (known) return this.#storedOf(value, chunk);
    const dims = value.dims.map((dim) => this.#sizeOf(dim));
    // Classes are few; one that no chunk has costs a row.
    const count = ofClass ? Math.max(...this.#classes) + 1 : 1;
    this.#stored.set(
      value,
      Array.from({ length: count }, () => this.kept.pool.take(dims)),
    );
    return this.#storedOf(value, chunk);
  }

  #sizeOf(dim: number | string): number {
    return dim === tokenRows ? this.#tokens : this.#bound.size(dim);
  }

  /** What is added to the logits of R rows and K keys: 0 but for the last key, [1, 1, R, K]. */
  #lastBias({ name, keys }: Extract<Source, { kind: 'lastBias' }>, { count }: RowChunk): Tensor {
    const last = this.#bound.number(name);
    const [size = 0] = keys.dims;
    const width = this.#sizeOf(size);
    const key = `${count} ${width} ${last}`;
    const known = this.kept.lastBiases.get(key);
    if (known) return known;
    const values = new Float32Array(count * width);
    for (let i = width - 1; i < values.length; i += width) values[i] = last;
    const bias = this.backend.tensor('float32', [1, 1, count, width], 'activations', values);
    this.kept.lastBiases.set(key, bias);
    return bias;
  }
}

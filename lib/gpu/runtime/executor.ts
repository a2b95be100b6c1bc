import { cut, type Graph, hasTokenRows, tokenRows, type Value } from '../../graph';
import type { Backend, DeviceTensor } from '../backend';
import { elementCount } from '../backend';
import { TensorPool } from '../pool';
import { emit, type PassGraph, portOf, type Source } from './emit';

type Tensor = DeviceTensor<'float32'>;

/** Rows of tokens that are computed together. */
export interface RowChunk {
  /** First token. */
  readonly start: number;
  readonly count: number;
  /** Index of its class: which of the tensors of a classed input belong to it. */
  readonly class: number;
}

/** A tensor with rows of the clip, of which the first is row `first`. */
export interface RowTensor {
  readonly tensor: DeviceTensor;
  readonly first: number;
}

/** What a caller binds to an input, an output or a weight: a tensor, one for each class of tokens, or a number. */
export type Bound = DeviceTensor | RowTensor | readonly DeviceTensor[] | number;
export type GraphBindings = Readonly<Record<string, Bound>>;

/**
 * Runs graphs by ONNX Runtime, in f32: each pass is one session, which serves all graphs that are alike. It is the
 * only executor on the CPU, and the reference of the kernels.
 *
 * What passes store for each other, and chunks of rows where the runtime knows no offsets, are tensors of a pool,
 * which the next run uses again.
 */
export class RuntimeExecutor {
  readonly #pool: TensorPool;
  /** By graph and names of its classed inputs. */
  readonly #passes = new Map<Graph, Map<string, readonly PassGraph[]>>();
  /** By rows, keys and number. */
  readonly #lastBiases = new Map<string, Tensor>();

  constructor(readonly backend: Backend) {
    this.#pool = new TensorPool(backend, 'activations');
  }

  /**
   * Computes a graph; resolves when the work is submitted.
   *
   * @param bindings by name: inputs, outputs, and weights as `layer.role`. An updated input is bound once.
   * @param chunks the rows that are computed; other rows of outputs stay as they are
   * @throws TypeError where something is not bound or does not fit
   * @throws KinoraError `OUT_OF_MEMORY`
   */
  async run(
    graph: Graph,
    bindings: GraphBindings,
    chunks: readonly RowChunk[] = [],
  ): Promise<void> {
    const run = new Run(this.backend, this.#pool, this.#lastBiases, graph, bindings, chunks);
    try {
      for (const pass of this.#passesOf(graph, bindings)) await run.pass(pass);
    } finally {
      run.end();
    }
  }

  dispose(): void {
    for (const tensor of this.#lastBiases.values()) tensor.dispose();
    this.#lastBiases.clear();
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

/** One run of a graph. */
class Run {
  /** What earlier passes have stored: one tensor, or one for each class. */
  readonly #stored = new Map<Value, readonly Tensor[]>();
  readonly #outputs: ReadonlyMap<Value, Bound>;
  readonly #classes: readonly number[];
  /** Tokens of the clip. */
  readonly #tokens: number;

  constructor(
    readonly backend: Backend,
    readonly pool: TensorPool,
    readonly lastBiases: Map<string, Tensor>,
    readonly graph: Graph,
    readonly bindings: GraphBindings,
    readonly chunks: readonly RowChunk[],
  ) {
    const outputs = [...graph.outputs].map(([name, { value }]) => [value, this.#bound(name)]);
    const updates = [...graph.updates].map(([{ call }, value]) => [
      value,
      this.#bound(call.op === 'input' ? call.name : ''),
    ]);
    this.#outputs = new Map([...outputs, ...updates] as [Value, Bound][]);
    this.#classes = [...new Set(chunks.map((chunk) => chunk.class))];
    this.#tokens = Math.max(0, ...chunks.map(({ start, count }) => start + count));
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
      this.pool.give(...pieces);
    }
  }

  end(): void {
    for (const tensors of this.#stored.values()) this.pool.give(...tensors);
    this.#stored.clear();
  }

  #bound(name: string): Bound {
    const bound = this.bindings[name];
    if (bound === undefined) throw new TypeError(`${this.graph.name}: ${name} is not bound`);
    return bound;
  }

  #input(source: Source, chunk: RowChunk, pieces: Tensor[]): DeviceTensor {
    switch (source.kind) {
      case 'bound':
        return tensorOf(this.#bound(source.name), chunk);
      case 'rows':
        return this.#readRows(rowsOf(this.#bound(source.name)), chunk, pieces);
      case 'stored':
        return this.#storedOf(source.value, chunk);
      case 'storedRows':
        return this.#readRows(
          { tensor: this.#storedOf(source.value, chunk), first: 0 },
          chunk,
          pieces,
        );
      case 'lastBias':
        return this.#lastBias(source, chunk);
    }
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
    const bound = this.#outputs.get(value);
    if (!hasTokenRows(value)) {
      return bound === undefined ? this.#store(value, ofClass, chunk) : tensorOf(bound, chunk);
    }
    const target =
      bound === undefined ? { tensor: this.#store(value, false, chunk), first: 0 } : rowsOf(bound);
    const to = chunk.start - target.first;
    const view = this.backend.rows(target.tensor, to, chunk.count);
    if (view) return view;
    const piece = this.#piece(target.tensor, chunk, pieces);
    const width = elementCount(target.tensor.dims.slice(1));
    after.push(() => this.backend.copy(piece, 0, target.tensor, to * width, chunk.count * width));
    return piece;
  }

  #piece({ dims }: DeviceTensor, { count }: RowChunk, pieces: Tensor[]): Tensor {
    const piece = this.pool.take([count, ...dims.slice(1)]);
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
      Array.from({ length: count }, () => this.pool.take(dims)),
    );
    return this.#storedOf(value, chunk);
  }

  #sizeOf(dim: number | string): number {
    if (typeof dim === 'number') return dim;
    if (dim === tokenRows) return this.#tokens;
    for (const { call, dims } of this.graph.values) {
      const axis = call.op === 'input' ? dims.indexOf(dim) : -1;
      if (call.op !== 'input' || axis < 0) continue;
      const size = tensorOf(this.#bound(call.name), { class: 0 }).dims[axis];
      if (size !== undefined) return size;
    }
    throw new TypeError(`${this.graph.name}: the size ${dim} is not known`);
  }

  /** What is added to the logits of R rows and K keys: 0 but for the last key, [1, 1, R, K]. */
  #lastBias({ name, keys }: Extract<Source, { kind: 'lastBias' }>, { count }: RowChunk): Tensor {
    const last = this.#bound(name);
    if (typeof last !== 'number') throw new TypeError(`${name} is a number`);
    const [size = 0] = keys.dims;
    const width = this.#sizeOf(size);
    const key = `${count} ${width} ${last}`;
    const known = this.lastBiases.get(key);
    if (known) return known;
    const values = new Float32Array(count * width);
    for (let i = width - 1; i < values.length; i += width) values[i] = last;
    const bias = this.backend.tensor('float32', [1, 1, count, width], 'activations', values);
    this.lastBiases.set(key, bias);
    return bias;
  }
}

function rowsOf(bound: Bound): RowTensor {
  if (typeof bound === 'object' && 'tensor' in bound) return bound;
  return { tensor: tensorOf(bound, { class: 0 }), first: 0 };
}

function tensorOf(bound: Bound, chunk: Pick<RowChunk, 'class'>): DeviceTensor {
  if (typeof bound === 'number') throw new TypeError('a number is bound where a tensor is wanted');
  if ('tensor' in bound) return bound.tensor;
  if (!isClassed(bound)) return bound;
  const tensor = bound[chunk.class];
  if (!tensor) throw new TypeError(`nothing is bound for the class ${chunk.class}`);
  return tensor;
}

function isClassed(
  bound: DeviceTensor | readonly DeviceTensor[],
): bound is readonly DeviceTensor[] {
  return Array.isArray(bound);
}

import { at } from '../../contract';
import {
  columns,
  cut,
  type Graph,
  hasTokenRows,
  type LinearLayer,
  type Pass,
  type Value,
} from '../../graph';
import type { Backend, SimdMemory } from '../backend';
import { type Match, matchPatterns, operandOf, partsOf } from '../compiler/patterns';
import type { GraphSizes } from '../compiler/placeholders';
import { Refusal } from '../compiler/refusal';
import {
  BoundGraph,
  type Executor,
  type GraphBindings,
  type RowChunk,
  tokensOfChunks,
} from '../executor';
import { handleMessages } from '../messages';
import type { DeviceTensor } from '../tensor';
import { attend, type Rows as HeapRows } from './attention';
import { type Block, SimdHeap } from './heap';
import { fill, groupSize, type ProductName, product } from './kernels';
import { filters, gelu, norm, rotary } from './row-kernels';
import { type Job, SimdThreads } from './threads';

/** Rows that a thread computes together: they stay in the cache while all columns are computed. */
const rowTile = 48;
/** Bytes of a weight that are packed together. */
const weightTile = 2 ** 20;
/** Bytes of packed weights that are kept for the next run: all of a small model's. */
const mostKept = 2 ** 26;
/** Between two turns of the event loop, in milliseconds: a cancellation may come in. */
const turnMs = 50;

/** Rows of f32 in the heap, each filled up with zeros to whole groups. */
interface Rows extends HeapRows {
  readonly columns: number;
}

/** Rows of anything that lies in the heap. */
type Place = Pick<Rows, 'first' | 'step'>;

/** What follows a product; addresses of a number for each column. */
interface Epilogue {
  /** What is added to sums, and what they are multiplied by. */
  readonly bias: number;
  readonly factors?: number | undefined;
  /** What is added then. */
  readonly side?: Place | undefined;
}

interface CompiledPass {
  readonly kind: Pass['kind'];
  readonly matches: readonly Match[];
  /** Results that later passes read. */
  readonly kept: ReadonlySet<Value>;
  /** What is not read any more after a match. */
  readonly last: ReadonlyMap<Match, readonly Value[]>;
}

/** Computes graphs of tokens on the CPU by vectors of WebAssembly. */
export class SimdTokens implements Executor {
  readonly heap: SimdHeap;
  readonly threads: SimdThreads;
  readonly #passes = new Map<Graph, readonly CompiledPass[]>();
  readonly #packed = new Map<DeviceTensor, Map<number, PackedTile>>();
  readonly #releases: (() => void)[] = [];
  #keptBytes = 0;

  /** @throws Refusal for what these kernels do not compute */
  constructor(
    readonly simd: SimdMemory,
    graphs: Iterable<Graph>,
    readonly sizes: Pick<GraphSizes, 'classed'>,
  ) {
    for (const graph of graphs) this.#passesOf(graph);
    this.heap = new SimdHeap((category, bytes) => this.#releases.push(simd.take(category, bytes)));
    this.threads = new SimdThreads(this.heap);
  }

  async run(
    graph: Graph,
    bindings: GraphBindings,
    chunks: readonly RowChunk[] = [],
  ): Promise<void> {
    const run = new Run(this, new BoundGraph(graph, bindings), chunks);
    let turn = performance.now();
    try {
      for (const _ of run.steps(this.#passesOf(graph))) {
        if (performance.now() - turn < turnMs) continue;
        await handleMessages();
        turn = performance.now();
      }
    } finally {
      run.end();
    }
  }

  async finish(): Promise<void> {}

  dispose(): void {
    this.threads.dispose();
    for (const release of this.#releases.splice(0)) release();
  }

  #passesOf(graph: Graph): readonly CompiledPass[] {
    const known = this.#passes.get(graph);
    if (known) return known;
    const passes = cut(graph, this.sizes.classed);
    const matched = passes.map((pass, index) =>
      matchPatterns(graph, pass, passes.slice(index + 1)),
    );
    for (const match of matched.flat()) requireComputed(graph, match);
    // What differs by the class of tokens is little: each chunk computes it.
    const ofClass = passes.flatMap(({ kind }, i) => (kind === 'class' ? at(matched, i) : []));
    const compiled = passes.flatMap(({ kind, results }, index) => {
      if (kind === 'class') return [];
      const own = at(matched, index);
      const matches = kind === 'rows' ? [...ofClass, ...own] : own;
      const later = new Set(matched.slice(index + 1).flatMap((of) => of.flatMap(readsOf)));
      const kept = new Set(results.filter((value) => later.has(value)));
      return [{ kind, matches, kept, last: lastReads(matches) }];
    });
    this.#passes.set(graph, compiled);
    return compiled;
  }

  /**
   * `y = (x·W + bias) ⊙ factors + side`, with groups of columns side by side. Threads share the rows, or the columns of
   * few rows.
   *
   * @param length values of a row, filled up
   * @param weights address of groups of filters
   */
  multiply(
    x: Rows,
    length: number,
    weights: number,
    groups: number,
    y: Place,
    { bias, factors, side }: Epilogue,
  ): void {
    const group = 4 * groupSize;
    const { zeros, ones } = this.heap;
    const rowParts = Math.ceil(x.count / rowTile);
    const groupTile = rowParts > 1 ? groups : Math.ceil(groups / (4 * this.threads.count));
    const [rowStep, groupStep] = rowParts > 1 ? [rowTile, 0] : [0, groupTile * group];
    const shift = ({ first, step }: Place) => [first, rowStep * step + groupStep] as const;
    const job: Job<ProductName> = {
      segments: zeros.at,
      count: 1,
      length: length / 4,
      offset: [x.first, rowStep * x.step],
      weights: [weights, groupStep * length],
      weightStep: group * length,
      groups: rowParts > 1 ? groups : [groupTile, groups],
      bias: [bias, groupStep],
      output: shift(y),
      outputStep: y.step,
      side: side ? shift(side) : zeros.at,
      sideStep: side?.step ?? 0,
      sideGroup: side ? group : 0,
      rows: rowParts > 1 ? [rowTile, x.count] : x.count,
      floor: Number.NEGATIVE_INFINITY,
      ceiling: Number.POSITIVE_INFINITY,
      factors: factors === undefined ? ones.at : [factors, groupStep],
      factorStep: factors === undefined ? 0 : group,
    };
    const parts = rowParts > 1 ? rowParts : Math.ceil(groups / groupTile);
    this.threads.run(`product ${x.step}`, () => product(x.step), job, parts);
  }

  /**
   * A tile of a weight's columns as filters, from the last run where it was kept.
   *
   * @param tensor whose content they are made of
   * @param columns their range
   * @param k values of a column
   * @param make the values of a column
   * @returns `isKept`: the block is not to be given back
   */
  pack(
    tensor: DeviceTensor,
    { start, end }: { readonly start: number; readonly end: number },
    k: number,
    make: (column: number) => Float32Array,
  ): { readonly block: Block; readonly isKept: boolean } {
    const tiles = this.#packed.get(tensor) ?? new Map<number, PackedTile>();
    const known = tiles.get(start);
    const version = this.simd.version(tensor);
    if (known?.version === version) return { block: known.block, isKept: true };
    const [length, filled] = [fill(k), fill(end - start)];
    const bytes = 4 * filled * length;
    // Weights that are kept leave room for what is computed.
    const most = Math.min(mostKept, this.simd.room() / 8);
    const isKept = known !== undefined || this.#keptBytes + bytes <= most;
    const block = known?.block ?? this.heap.allocate(bytes, `weights ${bytes}`, 'weights');
    const raw = this.heap.allocate(bytes);
    const { floats } = this.heap;
    floats.fill(0, raw.at / 4, (raw.at + bytes) / 4);
    for (let column = start; column < end; column++) {
      floats.set(make(column), raw.at / 4 + (column - start) * length);
    }
    const job = {
      x: raw.at,
      step: 4 * length,
      y: block.at,
      fours: length / 4,
      groups: filled / groupSize,
    };
    this.threads.run('filters', filters, job, 1);
    this.heap.release(raw);
    if (isKept) {
      this.#keptBytes += known ? 0 : bytes;
      this.#packed.set(tensor, tiles.set(start, { block, version }));
    }
    return { block, isKept };
  }
}

/** A tile of a weight that stays packed, and the version of the tensor that it was made of. */
interface PackedTile {
  readonly block: Block;
  readonly version: number;
}

/** @throws Refusal for a match without kernels */
function requireComputed(graph: Graph, { kind, value, ...match }: Match): void {
  const refuse = (reason: string) => {
    throw new Refusal(graph.name, value.call.op, reason);
  };
  const { call } = value;
  if (call.op === 'attention' && (columns(value) / call.heads) % groupSize > 0) {
    refuse(`has heads of ${columns(value) / call.heads}`);
  }
  if (kind === 'layerNorm' && columns(value) % groupSize > 0) {
    refuse(`has rows of ${columns(value)}`);
  }
  if ('gate' in match && match.gate && match.gate.dims.length > 1 && match.gate.dims[0] !== 1) {
    refuse('is gated by more than a row');
  }
}

function readsOf(match: Match): readonly Value[] {
  const parts = new Set([match.value, ...partsOf(match)]);
  const reads = [...parts].flatMap(({ operands }) => operands);
  return reads.filter((value) => !parts.has(value));
}

function lastReads(matches: readonly Match[]): ReadonlyMap<Match, readonly Value[]> {
  const last = new Map<Value, Match>();
  for (const match of matches) {
    for (const value of [...readsOf(match), match.value]) last.set(value, match);
  }
  const dead = new Map<Match, Value[]>();
  for (const [value, match] of last) dead.set(match, [...(dead.get(match) ?? []), value]);
  return dead;
}

/** One run of a graph. */
class Run {
  /** Whole values that later passes read. */
  readonly #kept = new Map<Value, Rows>();
  /** Values of the chunk. */
  readonly #local = new Map<Value, Rows>();
  readonly #blocks = new Map<Rows, Block>();
  /** What a single match needs. */
  readonly #temporary: Rows[] = [];
  readonly #outputs = new Map<Value, string>();
  readonly #heap: SimdHeap;
  #pass: CompiledPass | null = null;
  #chunk: RowChunk = { start: 0, count: 0, class: 0 };

  constructor(
    readonly executor: SimdTokens,
    readonly bound: BoundGraph,
    readonly chunks: readonly RowChunk[],
  ) {
    this.#heap = executor.heap;
    const { outputs, updates } = bound.graph;
    for (const [name, { value }] of outputs) this.#outputs.set(value, name);
    for (const [{ call }, value] of updates) {
      if (call.op === 'input') this.#outputs.set(value, call.name);
    }
  }

  /** Computes the matches of passes, chunk by chunk, one after another. */
  *steps(passes: readonly CompiledPass[]): Generator<void> {
    for (const pass of passes) {
      this.#pass = pass;
      for (const chunk of pass.kind === 'rows' ? this.chunks : [{ start: 0, count: 0, class: 0 }]) {
        this.#chunk = chunk;
        for (const match of pass.matches) {
          this.#compute(match);
          const name = this.#outputs.get(match.value);
          if (name !== undefined) this.#write(match.value, name);
          for (const rows of this.#temporary.splice(0)) this.#release(rows);
          for (const value of pass.last.get(match) ?? []) this.#free(value);
          yield;
        }
      }
    }
  }

  end(): void {
    for (const block of this.#blocks.values()) this.#heap.release(block);
  }

  #compute(match: Match): void {
    const { value } = match;
    switch (match.kind) {
      case 'linear': {
        const y = this.#linear(match.linear, value);
        if (match.gelu) this.#gelu(y);
        break;
      }
      case 'residual': {
        const { linear, residual, gate } = match;
        this.#linear(linear, value, this.#at(residual), gate && this.#at(gate));
        break;
      }
      case 'product': {
        const y = this.#linear(match.linear, value);
        this.#each(y, [this.#at(match.factor), y], (a, b) => a * b);
        break;
      }
      case 'rmsNorm':
        this.#rmsNorm(value, value, null);
        break;
      case 'headRows':
        this.#rmsNorm(match.norm, value, match.rotary);
        break;
      case 'layerNorm':
        this.#layerNorm(match.norm, value);
        break;
      case 'gatherHeads':
        this.#gatherHeads(value);
        break;
      case 'attention':
        this.#attention(value);
        break;
      case 'sum': {
        const sign = value.call.op === 'sub' ? -1 : 1;
        this.#each(this.#make(value), this.#operands(value), (a, b) => a + sign * b);
        break;
      }
      case 'pointwise':
        this.#pointwise(value);
        break;
      case 'row':
        if (value.call.op === 'row') {
          // Memory may grow: what is read of it comes last.
          const [table, y] = [this.#at(operandOf(value, 0)), this.#make(value)];
          this.#numbers(y, 0).set(this.#numbers(table, value.call.index));
        }
        break;
    }
  }

  /** `side + factors ⊙ (W·x + b)`, and a LoRA beside it. */
  #linear(linear: Value, value: Value, side?: Rows, factors?: Rows | null): Rows {
    const { call } = linear;
    if (call.op !== 'linear') throw new TypeError(`${call.op} is no linear layer`);
    const { layer } = call;
    const { name, inFeatures: k, outFeatures: n, bits, bias, lora } = layer;
    const x = this.#at(operandOf(linear, 0));
    const [rank = 0] = lora ? this.#tensor(`${name}.down`).dims : [];
    const zeros = this.#row(new Float32Array(Math.max(n, rank))).first;
    const added = bias ? this.#row(this.#values(`${name}.bias`)).first : zeros;
    const y = this.#make(value);
    const tensor = this.#tensor(`${name}.${bits === null ? 'weight' : 'values'}`);
    const scaled = { factors: factors?.first };
    const make = bits === null ? this.#columns(tensor, k) : this.#dequantised(layer);
    this.#product(tensor, make, { k, n }, x, y, { ...scaled, bias: added, side });
    if (!lora) return y;
    const [down, up] = [this.#tensor(`${name}.down`), this.#tensor(`${name}.up`)];
    const t = this.#rows(x.count, rank, true);
    this.#product(down, this.#columns(down, k), { k, n: rank }, x, t, { bias: zeros });
    this.#product(up, this.#columns(up, rank), { k: rank, n }, t, y, {
      ...scaled,
      bias: zeros,
      side: y,
    });
    return y;
  }

  /** A product with a weight, tile by tile of its columns. */
  #product(
    tensor: DeviceTensor,
    make: (column: number) => Float32Array,
    { k, n }: { readonly k: number; readonly n: number },
    x: Rows,
    y: Rows,
    { bias, factors, side }: Epilogue,
  ): void {
    const length = fill(k);
    const most = groupSize * Math.max(1, Math.floor(weightTile / (4 * groupSize * length)));
    for (let start = 0; start < n; start += most) {
      const end = Math.min(n, start + most);
      const { block, isKept } = this.executor.pack(tensor, { start, end }, k, make);
      const shifted = (place: Place) => ({ ...place, first: place.first + 4 * start });
      this.executor.multiply(x, length, block.at, fill(end - start) / groupSize, shifted(y), {
        bias: bias + 4 * start,
        factors: factors && factors + 4 * start,
        side: side && shifted(side),
      });
      if (!isKept) this.#heap.release(block);
    }
  }

  #columns(tensor: DeviceTensor, k: number): (column: number) => Float32Array {
    const data = this.executor.simd.values(tensor);
    return (column) => data.subarray(column * k, (column + 1) * k);
  }

  /** The numbers of a column of a weight in blocks; the next call overwrites them. */
  #dequantised({ name, inFeatures: k, bits }: LinearLayer): (column: number) => Float32Array {
    const [values, scales] = [this.#values(`${name}.values`), this.#values(`${name}.scales`)];
    const numbers = new Float32Array(k);
    const levelOf =
      bits === 8
        ? (index: number) => (values[index] as number) - 128
        : (index: number) => (((values[index >> 1] as number) >> (4 * (index & 1))) & 15) - 8;
    return (column) => {
      for (let i = 0, index = column * k; i < k; i++, index++) {
        numbers[i] = levelOf(index) * (scales[index >> 5] as number);
      }
      return numbers;
    };
  }

  #attention(value: Value): void {
    const { call } = value;
    if (call.op !== 'attention') throw new TypeError(`${call.op} is no attention`);
    const { heads, scale, lastBias } = call;
    const queries = this.#at(operandOf(value, 0));
    const [keys, values] = [this.#whole(operandOf(value, 1)), this.#whole(operandOf(value, 2))];
    const matrix = value.operands[3] && this.#at(value.operands[3]);
    const y = this.#make(value);
    attend(this.#heap, this.executor.threads, {
      queries,
      keys,
      values,
      output: y.first,
      heads,
      headSize: columns(value) / heads,
      scale,
      last: lastBias === null ? 0 : this.bound.number(lastBias),
      side: matrix,
    });
  }

  #gelu({ first, count, step }: Rows): void {
    const fours = (rowTile * step) / 16;
    const job = { x: [first, rowTile * step], rows: [fours, (count * step) / 16] } as const;
    const parts = Math.ceil(count / rowTile);
    this.executor.threads.run('gelu', gelu, job, parts);
  }

  #norm(
    kind: 'layerNorm' | 'rmsNorm',
    x: Rows,
    y: Rows,
    factors: number,
    added: number,
    epsilon: number,
  ): void {
    const tile = ({ first, step }: Rows) => [first, rowTile * step] as const;
    const job = {
      x: tile(x),
      y: tile(y),
      rows: [rowTile, x.count],
      fours: x.step / 16,
      factors,
      added,
      share: 1 / x.columns,
      epsilon,
    } as const;
    const parts = Math.ceil(x.count / rowTile);
    this.executor.threads.run(kind, () => norm(kind), job, parts);
  }

  /** An RMS norm, and the rotary embedding of the result. */
  #rmsNorm(of: Value, value: Value, rotated: Value | null): void {
    const { call } = of;
    if (call.op !== 'rmsNorm') throw new TypeError(`${call.op} is no RMS norm`);
    const [x, weight] = this.#operands(of) as [Rows, Rows];
    const y = this.#make(value);
    this.#norm('rmsNorm', x, y, weight.first, 0, call.epsilon);
    if (rotated?.call.op !== 'rotary') return;
    const { heads } = rotated.call;
    const size = y.columns / heads;
    /** A number for each element of a pair. */
    const doubled = (index: number, sign: number) => {
      const table = this.#at(operandOf(rotated, index));
      const all = this.#rows(table.count, size, true);
      for (let row = 0; row < table.count; row++) {
        const [from, to] = [this.#numbers(table, row), this.#numbers(all, row)];
        for (const [i, number] of from.entries()) {
          to[2 * i] = sign * number;
          to[2 * i + 1] = number;
        }
      }
      return [all.first, rowTile * all.step] as const;
    };
    const job = {
      x: [y.first, rowTile * y.step],
      rows: [rowTile, y.count],
      heads,
      fours: size / 4,
      cosines: doubled(1, 1),
      sines: doubled(2, -1),
    } as const;
    const parts = Math.ceil(y.count / rowTile);
    this.executor.threads.run('rotary', rotary, job, parts);
  }

  #layerNorm(of: Value, value: Value): void {
    const { call } = of;
    if (call.op !== 'layerNorm' || value.call.op !== 'modulate') {
      throw new TypeError(`${value.call.op} is no modulated norm`);
    }
    const { one } = value.call;
    const [scale, shift] = [this.#at(operandOf(value, 1)), this.#at(operandOf(value, 2))];
    const x = this.#at(operandOf(of, 0));
    const factors = this.#row(this.#numbers(scale, 0).map((number) => one + number)).first;
    this.#norm('layerNorm', x, this.#make(value), factors, shift.first, call.epsilon);
  }

  /** A row for each head and row of indices. */
  #gatherHeads(value: Value): void {
    const table = this.#at(operandOf(value, 0));
    const { call } = operandOf(value, 1);
    if (call.op !== 'input') throw new TypeError('indices are an input');
    const indices = this.#values(call.name);
    const [count = 0, width = 0] = this.#tensor(call.name).dims;
    const y = this.#rows(count * table.columns, width);
    this.#local.set(value, y);
    for (let row = 0; row < y.count; row++) {
      const [head, first] = [Math.floor(row / count), (row % count) * width];
      const to = this.#numbers(y, row);
      for (let i = 0; i < width; i++) {
        to[i] = this.#numbers(table, indices[first + i] as number)[head] as number;
      }
    }
  }

  #pointwise(value: Value): void {
    const { call } = value;
    const [x, ...others] = this.#operands(value) as [Rows, ...Rows[]];
    const y = this.#make(value);
    switch (call.op) {
      case 'silu':
        this.#each(y, [x, x], (a) => a / (1 + Math.exp(-a)));
        break;
      case 'geluErf':
        this.#each(y, [x, x], (a) => (a / 2) * (1 + erf(a / Math.SQRT2)));
        break;
      case 'weightedSum': {
        const [first = 0, ...rest] = call.coefficients.map((coefficient) =>
          typeof coefficient === 'number' ? coefficient : this.bound.number(coefficient),
        );
        this.#each(y, [x, x], (a) => first * a);
        for (const [i, factor] of rest.entries()) {
          this.#each(y, [y, at(others, i)], (a, b) => a + factor * b);
        }
      }
    }
  }

  /** A function of the elements at one place; what has one row serves all of them. */
  #each(y: Rows, inputs: readonly Rows[], of: (a: number, b: number) => number): void {
    for (let row = 0; row < y.count; row++) {
      const to = this.#numbers(y, row);
      const [a, b] = inputs.map((x) => this.#numbers(x, x.count === 1 ? 0 : row));
      for (let i = 0; i < to.length; i++) to[i] = of(a?.[i] as number, b?.[i] as number);
    }
  }

  #operands({ operands }: Value): readonly Rows[] {
    return operands.map((operand) => this.#at(operand));
  }

  /** The chunk's rows of a value, or all of one without rows of tokens. */
  #at(value: Value): Rows {
    const known = this.#local.get(value);
    if (known) return known;
    const kept = this.#kept.get(value);
    if (kept) return hasTokenRows(value) ? this.#part(kept) : kept;
    const rows = this.#read(value, hasTokenRows(value) ? this.#chunk : null);
    this.#local.set(value, rows);
    return rows;
  }

  /** All rows of a value. */
  #whole(value: Value): Rows {
    if (!hasTokenRows(value)) return this.#at(value);
    const rows = this.#kept.get(value) ?? this.#read(value, null);
    this.#kept.set(value, rows);
    return rows;
  }

  /** The chunk's rows of a value of all chunks. */
  #part(rows: Rows): Rows {
    const { start, count } = this.#chunk;
    return { ...rows, first: rows.first + start * rows.step, count };
  }

  /** The tensor of an input or output, and its first row. */
  #bound(value: Value, name: string) {
    return hasTokenRows(value) ? this.bound.rows(name) : { tensor: this.#tensor(name), first: 0 };
  }

  /** An input, as rows in the heap. @param chunk the rows that are read; all of them when absent */
  #read(value: Value, chunk: RowChunk | null): Rows {
    const { call } = value;
    if (call.op !== 'input') throw new TypeError(`${call.op} was not computed`);
    const { tensor, first } = this.#bound(value, call.name);
    const data = this.executor.simd.values(tensor);
    const width = columns(value);
    const rows = this.#rows(chunk?.count ?? data.length / width, width);
    const start = chunk ? chunk.start - first : 0;
    for (let row = 0; row < rows.count; row++) {
      this.#numbers(rows, row).set(data.subarray((start + row) * width, (start + row + 1) * width));
    }
    return rows;
  }

  /** Copies a value to the tensor that the caller has bound for it. */
  #write(value: Value, name: string): void {
    const { tensor, first } = this.#bound(value, name);
    const data = this.executor.simd.values(tensor);
    const rows = this.#at(value);
    const start = hasTokenRows(value) ? this.#chunk.start - first : 0;
    for (let row = 0; row < rows.count; row++) {
      data.set(this.#numbers(rows, row), (start + row) * rows.columns);
    }
  }

  /** Rows for a value of this pass; what later passes read lies with all rows of the clip. */
  #make(value: Value): Rows {
    const [dim = 1] = value.dims;
    const width = columns(value);
    const ofTokens = hasTokenRows(value);
    const count = ofTokens ? this.#chunk.count : value.dims.length < 2 ? 1 : this.bound.size(dim);
    if (!this.#pass?.kept.has(value)) {
      const rows = this.#rows(count, width);
      this.#local.set(value, rows);
      return rows;
    }
    const whole =
      this.#kept.get(value) ?? this.#rows(ofTokens ? tokensOfChunks(this.chunks) : count, width);
    this.#kept.set(value, whole);
    return ofTokens ? this.#part(whole) : whole;
  }

  /** Numbers for each column, for a single match. */
  #row(numbers: Float32Array): Rows {
    const rows = this.#rows(1, numbers.length, true);
    this.#numbers(rows, 0).set(numbers);
    return rows;
  }

  /** Rows of few kinds of sizes; what fills them up, to whole groups of rows too, is zero. */
  #rows(count: number, width: number, isTemporary = false): Rows {
    const step = 4 * fill(width);
    const block = this.#heap.allocate(fill(count) * step);
    const start = step === 4 * width ? count * step : 0;
    this.#heap.floats.fill(0, (block.at + start) / 4, (block.at + block.bytes) / 4);
    const rows = { first: block.at, count, columns: width, step };
    this.#blocks.set(rows, block);
    if (isTemporary) this.#temporary.push(rows);
    return rows;
  }

  #release(rows: Rows): void {
    const block = this.#blocks.get(rows);
    if (block) this.#heap.release(block);
    this.#blocks.delete(rows);
  }

  #free(value: Value): void {
    const rows = this.#local.get(value);
    if (rows) this.#release(rows);
    this.#local.delete(value);
  }

  /** The numbers of a row, in the heap. */
  #numbers({ first, step, columns }: Rows, row: number): Float32Array<ArrayBuffer> {
    return new Float32Array(this.#heap.memory.buffer, first + row * step, columns);
  }

  #tensor(name: string): DeviceTensor {
    return this.bound.tensor(name, this.#chunk.class);
  }

  /** Elements of a tensor of any type. */
  #values(name: string): Float32Array {
    return this.executor.simd.values(this.#tensor(name));
  }
}

/** The error function; 7.1.26 of Abramowitz & Stegun, 1.5e-7 off at most. */
function erf(x: number): number {
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const terms = [1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592];
  const power = terms.reduce((sum, term) => (sum + term) * t, 0);
  return Math.sign(x) * (1 - power * Math.exp(-x * x));
}

/**
 * What computes graphs on the CPU by vectors; null where they have what no kernel there computes, or the runtime was
 * asked for.
 */
export function openTokens(
  { simd, runtimeOnly }: Backend,
  graphs: Iterable<Graph>,
  sizes: GraphSizes,
): SimdTokens | null {
  if (!simd || runtimeOnly) return null;
  try {
    return new SimdTokens(simd, graphs, sizes);
  } catch (error) {
    if (error instanceof Refusal) return null;
    throw error;
  }
}

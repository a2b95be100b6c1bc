import { columns, type Dim, type Graph, type Pass, tokenRows, type Value } from '../../graph';
import { classesOfChunks, tokensOfChunks } from '../executor';
import {
  type AttentionVariant,
  type Compute,
  type Dispatch,
  type LinearVariant,
  type MatrixAttentionVariant,
  type Storage,
  storageBytes,
} from '../kernels';
import type { Lifetimes, Slot } from './arena';
import type { GraphSizes } from './placeholders';
import { type Listing, type Place, slotsOf } from './places';
import { Refusal, refusing } from './refusal';

/** The kernels that compute graphs. */
export interface KernelSet {
  readonly linear: LinearVariant;
  readonly attention: AttentionVariant;
  /** In the mode `fast`: for rows of tokens and weights in blocks, and for keys of the clip. */
  readonly fastLinear: LinearVariant | null;
  readonly fastAttention: AttentionVariant | null;
  /** In the mode `matrix`: for keys of the clip. */
  readonly matrixAttention: MatrixAttentionVariant | null;
  /** How rows lie between two steps; what is updated in place is f32. */
  readonly storage: Storage;
}

export interface CompileOptions extends GraphSizes {
  readonly kernels: KernelSet;
  readonly limits: Compute['limits'];
}

/** Lists the dispatches that compute a value, for a chunk, a class or once. */
export type Step = (listing: Listing) => readonly Dispatch[];

export interface CompiledPass {
  readonly kind: Pass['kind'];
  /** Of a pass over chunks: what is done once, before the first of them. */
  readonly before: readonly Step[];
  readonly steps: readonly Step[];
}

/** Rows in 8 bits, and a scale for each block of 32. */
export interface RoundedRows {
  readonly x: Slot;
  readonly xScales: Slot;
}

/** Where the values of a graph lie, and the steps of the pass that is compiled. */
export class GraphScope {
  /** S */
  readonly tokens: number;
  /** L: rows of the largest chunk. */
  readonly chunkRows: number;
  readonly #places = new Map<Value, Place>();
  readonly #outputs: ReadonlyMap<Value, string>;
  readonly #classes: number;
  #kind: Pass['kind'] = 'once';
  #before: Step[] = [];
  #steps: Step[] = [];
  /** Rows that fast layers read, which the layers of a pass share. */
  #rounded = new Map<Value, RoundedRows>();

  constructor(
    readonly graph: Graph,
    readonly options: CompileOptions,
    readonly lifetimes: Lifetimes,
  ) {
    const { chunks } = options;
    this.tokens = tokensOfChunks(chunks);
    this.chunkRows = Math.max(0, ...chunks.map(({ count }) => count));
    this.#classes = classesOfChunks(chunks);
    this.#outputs = new Map([...graph.outputs].map(([name, { value }]) => [value, name]));
  }

  get kernels(): KernelSet {
    return this.options.kernels;
  }

  refuse(value: Value, reason: string): never {
    throw new Refusal(this.graph.name, nameOf(value), reason);
  }

  /** The steps that `compile` makes, as a pass. */
  pass({ kind, results }: Pass, compile: () => void): CompiledPass {
    this.#kind = kind;
    this.#before = [];
    this.#steps = [];
    this.#rounded = new Map();
    this.lifetimes.beginPass();
    compile();
    const kept = results.flatMap((value) => slotsOf(this.at(value)));
    this.lifetimes.endPass(kept, kind !== 'once');
    return { kind, before: this.#before, steps: this.#steps };
  }

  at(value: Value): Place {
    const known = this.#places.get(value);
    if (known) return known;
    if (value.call.op !== 'input') return this.refuse(value, 'is read before it is computed');
    const place: Place = { kind: 'bound', name: value.call.name, storage: 'f32' };
    this.#places.set(value, place);
    return place;
  }

  put(value: Value, place: Place): Place {
    this.#places.set(value, place);
    return place;
  }

  isOutput(value: Value): boolean {
    return this.#outputs.has(value);
  }

  /** A new place: an output's is the caller's; rows are stored as the setting says, and tables in f32. */
  make(value: Value, storage = this.#storageOf(value)): Place {
    const name = this.#outputs.get(value);
    if (name !== undefined) return this.put(value, { kind: 'bound', name, storage: 'f32' });
    const bytes = this.mostRows(value) * columns(value) * storageBytes(storage);
    const count = this.#kind === 'class' ? this.#classes : 1;
    const slots = Array.from({ length: count }, () => this.lifetimes.take(bytes));
    return this.put(value, { kind: 'rows', slots, storage, row: 0 });
  }

  #storageOf({ dims }: Value): Storage {
    return typeof dims[0] === 'string' ? this.kernels.storage : 'f32';
  }

  /** Most rows of a value that are in memory at a time. */
  mostRows(value: Value): number {
    const [rows = 1] = value.dims;
    if (value.dims.length < 2) return 1;
    return rows === tokenRows ? this.chunkRows : this.mostOf(rows);
  }

  /** The most that a size can be which is not that of the tokens. */
  mostOf(dim: Dim): number {
    if (typeof dim === 'number') return dim;
    const most = this.options.sizes[dim];
    if (most === undefined) throw new TypeError(`${this.graph.name}: the size ${dim} is not known`);
    return most;
  }

  /** The next step; what it updates in place is among `writes` only. */
  step(value: Value, reads: readonly Slot[], writes: readonly Slot[], step: Step): void {
    this.lifetimes.step(reads, writes);
    this.#steps.push(refusing(this.graph, nameOf(value), step));
  }

  /** A step of a pass over chunks that is done once, before the first of them. */
  stepBefore(value: Value, reads: readonly Slot[], writes: readonly Slot[], step: Step): void {
    this.lifetimes.stepBefore(reads, writes);
    this.#before.push(refusing(this.graph, nameOf(value), step));
  }

  /** The rows of x in 8 bits, which `make` makes for the first layer of a pass that reads them. */
  rounded(x: Value, make: () => RoundedRows): RoundedRows {
    const rows = this.#rounded.get(x) ?? make();
    this.#rounded.set(x, rows);
    return rows;
  }
}

function nameOf({ call }: Value): string {
  return call.op === 'linear' ? call.layer.name : call.op;
}

import { type Graph, tokenRows } from '../graph';
import type { DeviceTensor } from './tensor';

/** Rows of tokens that are computed together. */
export interface RowChunk {
  /** First token. */
  readonly start: number;
  readonly count: number;
  /** Index of its class: which of the tensors of a classed input belong to it. */
  readonly class: number;
}

/** Tokens of a clip: all that its chunks reach to. */
export function tokensOfChunks(chunks: readonly RowChunk[]): number {
  return Math.max(0, ...chunks.map(({ start, count }) => start + count));
}

/** Classes of tokens that there are memory and tensors for. */
export function classesOfChunks(chunks: readonly RowChunk[]): number {
  return 1 + Math.max(0, ...chunks.map((chunk) => chunk.class));
}

/** A tensor with rows of the clip, of which the first is row `first`. */
export interface RowTensor {
  readonly tensor: DeviceTensor;
  readonly first: number;
}

/** What a caller binds to an input, an output or a weight: a tensor, one for each class of tokens, or a number. */
export type Bound = DeviceTensor | RowTensor | readonly DeviceTensor[] | number;
export type GraphBindings = Readonly<Record<string, Bound>>;

/** What computes graphs on a device: the runtime, or kernels of our own. Both give the same numbers up to rounding. */
export interface Executor {
  /**
   * Computes a graph; resolves when the work is submitted.
   *
   * @param bindings by name: inputs, outputs, and weights as `layer.role`. An updated input is bound once.
   * @param chunks the rows that are computed; other rows of outputs stay as they are
   * @throws TypeError where something is not bound or does not fit
   * @throws KinoraError `OUT_OF_MEMORY`
   */
  run(graph: Graph, bindings: GraphBindings, chunks?: readonly RowChunk[]): Promise<void>;
  /** Brings to the CPU what was counted on the device; after the last graph of a pass. */
  finish(): Promise<void>;
  dispose(): void;
}

/** A graph with what is bound to it for a run. */
export class BoundGraph {
  constructor(
    readonly graph: Graph,
    readonly bound: GraphBindings,
  ) {}

  /** @throws TypeError where nothing is bound to the name */
  get(name: string): Bound {
    return requireBound(this.bound[name], `${this.graph.name}: ${name}`);
  }

  /** The tensor of a name; of a classed input that of the class. */
  tensor(name: string, classIndex: number): DeviceTensor {
    const bound = this.get(name);
    if (typeof bound === 'number') {
      throw new TypeError(`${this.graph.name}: ${name} is bound to a number, not a tensor`);
    }
    if ('tensor' in bound) return bound.tensor;
    if (!isClassed(bound)) return bound;
    const tensor = bound[classIndex];
    if (!tensor) {
      throw new TypeError(`${this.graph.name}: ${name} is not bound for the class ${classIndex}`);
    }
    return tensor;
  }

  /** The tensor with rows of tokens of a name, and its first row. */
  rows(name: string): RowTensor {
    const bound = this.get(name);
    if (typeof bound === 'object' && 'tensor' in bound) return bound;
    return { tensor: this.tensor(name, 0), first: 0 };
  }

  number(name: string): number {
    const bound = this.get(name);
    if (typeof bound !== 'number') throw new TypeError(`${this.graph.name}: ${name} is a number`);
    return bound;
  }

  /** A size that the graph names, as a bound input has it. */
  size(dim: number | string): number {
    if (typeof dim === 'number') return dim;
    for (const { call, dims } of this.graph.values) {
      const axis = call.op === 'input' && dim !== tokenRows ? dims.indexOf(dim) : -1;
      if (call.op !== 'input' || axis < 0) continue;
      const size = this.tensor(call.name, 0).dims[axis];
      if (size !== undefined) return size;
    }
    throw new TypeError(`${this.graph.name}: the size ${dim} is not known`);
  }
}

/** @throws TypeError where nothing is bound to a name */
export function requireBound<T>(bound: T | undefined, name: string): T {
  if (bound === undefined) throw new TypeError(`${name} is not bound`);
  return bound;
}

function isClassed(
  bound: DeviceTensor | readonly DeviceTensor[],
): bound is readonly DeviceTensor[] {
  return Array.isArray(bound);
}

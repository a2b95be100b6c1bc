import type { ImageCall } from './images';

/*
 * A network as a graph of calls: what it computes, in the words of its paper. Nothing here knows of memory,
 * dispatches or storage; those are the business of the executors in `lib/gpu`.
 */

/** A size that is known now, or a name for one that is known when the graph runs. */
export type Dim = number | string;

/**
 * The first size of a tensor with a row per token of the clip. Executors compute such rows in chunks; rows of any
 * other name, such as those of a text, are computed together.
 */
export const tokenRows = 'S';

/** A linear layer. Its tensors are bound by name: `name.weight` or `name.values` and `name.scales`, … */
export interface LinearLayer {
  readonly name: string;
  /** K */
  readonly inFeatures: number;
  /** N */
  readonly outFeatures: number;
  /** Of a weight in blocks of 32; null for plain float32. */
  readonly bits: 8 | 4 | null;
  readonly bias: boolean;
  /** Elements of the factors of a LoRA beside it, `name.down` and `name.up`; false without one. */
  readonly lora: 'f32' | 'bf16' | false;
}

/** A number, or the name of one that the caller binds. */
export type Coefficient = number | string;

/** One call of a network; `calls.ts` and `images.ts` say what each computes. */
export type Call =
  | ImageCall
  | { readonly op: 'input'; readonly name: string }
  | { readonly op: 'linear'; readonly layer: LinearLayer }
  | { readonly op: 'layerNorm'; readonly epsilon: number }
  | { readonly op: 'modulate'; readonly one: 0 | 1 }
  | { readonly op: 'rmsNorm'; readonly epsilon: number }
  | { readonly op: 'rotary'; readonly heads: number }
  | {
      readonly op: 'attention';
      readonly heads: number;
      readonly scale: number;
      readonly lastBias: string | null;
    }
  | { readonly op: 'gatherHeads' }
  | { readonly op: 'gelu' | 'geluErf' | 'silu' | 'add' | 'sub' | 'mul' }
  | { readonly op: 'weightedSum'; readonly coefficients: readonly Coefficient[] }
  | { readonly op: 'row'; readonly index: number };

/** The result of a call, or an input of the graph. */
export interface Value {
  readonly graph: Graph;
  readonly call: Call;
  /** What the call reads, in the order of its function's parameters. */
  readonly operands: readonly Value[];
  readonly dims: readonly Dim[];
}

/** A result of a graph. */
export interface Output {
  readonly value: Value;
  /** Sizes of the tensor that takes it: those of the value, or others with as many elements. */
  readonly dims: readonly Dim[];
}

/** What a network, or a part of it, computes. */
export class Graph {
  /** Inputs and calls in the order in which they were written, which is an order of computation. */
  readonly values: Value[] = [];
  readonly outputs = new Map<string, Output>();
  /** By input: the value that replaces its content. */
  readonly updates = new Map<Value, Value>();

  constructor(readonly name: string) {}

  /** A tensor that the caller binds under this name. */
  input(name: string, dims: readonly Dim[]): Value {
    return this.append({ op: 'input', name }, [], dims);
  }

  /** Names a result. @param dims other sizes of the tensor that takes it */
  output(name: string, value: Value, dims: readonly Dim[] = value.dims): void {
    this.outputs.set(name, { value, dims });
  }

  /** The content of an input is replaced by `value`. */
  update(input: Value, value: Value): void {
    if (input.call.op !== 'input') throw new TypeError(`${this.name}: only inputs are updated`);
    this.updates.set(input, value);
  }

  /** Appends a call; for the functions of `calls.ts`. */
  append(call: Call, operands: readonly Value[], dims: readonly Dim[]): Value {
    for (const { graph } of operands) {
      if (graph !== this) throw new TypeError(`${this.name}: ${call.op} reads another graph`);
    }
    const value = { graph: this, call, operands, dims };
    this.values.push(value);
    return value;
  }
}

/** Whether a value has a row per token of the clip. */
export function hasTokenRows({ dims }: Value): boolean {
  return dims[0] === tokenRows;
}

/** Columns of a value: its last size, which is always known. */
export function columns({ dims }: Value): number {
  const last = dims.at(-1);
  if (typeof last !== 'number') throw new TypeError(`[${dims.join(', ')}] has no known width`);
  return last;
}

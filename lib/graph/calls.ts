import { type Call, type Coefficient, columns, type LinearLayer, type Value } from './graph';

/*
 * The vocabulary of networks. R rows of tokens or of a text, K and N columns, D = heads·headSize columns.
 */

function call(call: Call, operands: readonly [Value, ...Value[]], dims = operands[0].dims): Value {
  return operands[0].graph.append(call, operands, dims);
}

function requireColumns(op: string, value: Value, width: number): void {
  if (columns(value) !== width) {
    throw new TypeError(`${op}: [${value.dims.join(', ')}] must have ${width} columns`);
  }
}

/**
 * `W·x + b`, and `up·(down·x)` beside it where a LoRA is: base weights are never rewritten.
 *
 * @param x [R, K]
 * @returns [R, N]
 */
export function linear(x: Value, layer: LinearLayer): Value {
  requireColumns(layer.name, x, layer.inFeatures);
  return call({ op: 'linear', layer }, [x], [...x.dims.slice(0, -1), layer.outFeatures]);
}

/** `(x − mean) / √(variance + ε)` of each row, [R, D] (Ba et al. 2016), to be modulated. */
export function layerNorm(x: Value, epsilon: number): Value {
  return call({ op: 'layerNorm', epsilon }, [x]);
}

/**
 * `x·(1 + scale) + shift`.
 *
 * @param x a {@link layerNorm}, [R, D]
 * @param scale [D]
 * @param shift [D]
 */
export function modulate(x: Value, scale: Value, shift: Value): Value {
  return modulated(x, scale, shift, 1);
}

/** `x·weight + bias` of a {@link layerNorm}: [R, D], [D], [D]. */
export function affine(x: Value, weight: Value, bias: Value): Value {
  return modulated(x, weight, bias, 0);
}

function modulated(x: Value, scale: Value, shift: Value, one: 0 | 1): Value {
  if (x.call.op !== 'layerNorm') throw new TypeError('only a layer norm is modulated');
  requireColumns('modulate', scale, columns(x));
  requireColumns('modulate', shift, columns(x));
  return call({ op: 'modulate', one }, [x, scale, shift]);
}

/** `x / √(mean of x² + ε) · weight` of each row: [R, D], [D] (Zhang & Sennrich 2019). */
export function rmsNorm(x: Value, weight: Value, epsilon: number): Value {
  requireColumns('rmsNorm', weight, columns(x));
  return call({ op: 'rmsNorm', epsilon }, [x, weight]);
}

/**
 * Rotary embedding of the pairs (2i, 2i+1) of each head (Su et al. 2021): `(a·cos − b·sin, a·sin + b·cos)`.
 *
 * @param x [R, D]
 * @param cos [R, headSize/2]; `sin` likewise
 */
export function rotary(x: Value, cos: Value, sin: Value, heads: number): Value {
  requireColumns('rotary', cos, columns(x) / heads / 2);
  requireColumns('rotary', sin, columns(x) / heads / 2);
  return call({ op: 'rotary', heads }, [x, cos, sin]);
}

export interface AttentionOptions {
  readonly heads: number;
  /** Name of a number that the caller binds: it is added to the logit of the last key. */
  readonly lastBias?: string;
  /** Of the logits; 1/√headSize when absent. */
  readonly scale?: number;
  /** [heads, R, R′]: it is added to the logits. */
  readonly bias?: Value;
}

/**
 * `softmax(scale·q·kᵀ + bias)·v` of each head; heads lie side by side in a row. Keys and values are read as a whole.
 *
 * @param q [R, D]
 * @param k [R′, D]; `v` likewise
 */
export function attention(q: Value, k: Value, v: Value, options: AttentionOptions): Value {
  requireColumns('attention', k, columns(q));
  requireColumns('attention', v, columns(q));
  const { heads, lastBias = null, bias } = options;
  const { scale = 1 / Math.sqrt(columns(q) / heads) } = options;
  const operands = [q, k, v, ...(bias ? [bias] : [])] as const;
  return call({ op: 'attention', heads, scale, lastBias }, operands);
}

/**
 * A number for each head and each pair of rows: `table[indices[i, j], head]`.
 *
 * @param table [B, heads]
 * @param indices int32, [R, R′]
 * @returns [heads, R, R′]
 */
export function gatherHeads(table: Value, indices: Value): Value {
  return call({ op: 'gatherHeads' }, [table, indices], [columns(table), ...indices.dims]);
}

/** Inputs of a call that it reads as a whole, all rows of them. */
export function wholeOperands({ call, operands }: Value): readonly Value[] {
  return call.op === 'attention' ? operands.slice(1) : [];
}

/** GELU in its tanh form (Hendrycks & Gimpel 2016), `gelu_new` of transformers. */
export const gelu = (x: Value): Value => call({ op: 'gelu' }, [x]);
/** GELU itself, `x·Φ(x)` with the error function. */
export const geluErf = (x: Value): Value => call({ op: 'geluErf' }, [x]);
/** `x·sigmoid(x)`. */
export const silu = (x: Value): Value => call({ op: 'silu' }, [x]);
/** `a + b`, both of one shape, or b one row. */
export const add = (a: Value, b: Value): Value => elementWise('add', a, b);
/** `a − b`, both of one shape, or b one row. */
export const sub = (a: Value, b: Value): Value => elementWise('sub', a, b);
/** `a ⊙ b`, both of one shape, or b one row. */
export const mul = (a: Value, b: Value): Value => elementWise('mul', a, b);

function elementWise(op: 'add' | 'sub' | 'mul', a: Value, b: Value): Value {
  requireColumns(op, b, columns(a));
  return call({ op }, [a, b]);
}

/** `Σ cᵢ·xᵢ` of values of one shape. */
export function weightedSum(
  ...terms: readonly [readonly [Coefficient, Value], ...(readonly [Coefficient, Value])[]]
): Value {
  const [[, first], ...others] = terms;
  const coefficients = terms.map(([coefficient]) => coefficient);
  for (const [, value] of others) requireColumns('weightedSum', value, columns(first));
  return call({ op: 'weightedSum', coefficients }, [first, ...others.map(([, value]) => value)]);
}

/** A row of a table with a known number of them, [D]. @throws RangeError where it has no such row */
export function row(table: Value, index: number): Value {
  const [count] = table.dims;
  if (typeof count !== 'number' || index >= count) {
    throw new RangeError(`[${table.dims.join(', ')}] has no row ${index}`);
  }
  return call({ op: 'row', index }, [table], [columns(table)]);
}

import { type Graph, hasTokenRows, type Pass, type Value, wholeOperands } from '../../graph';
import { Refusal } from './refusal';

/** Calls that one kernel computes together, or the next to each other; `value` is what they give. */
export type Match =
  /** `W·x + b`, and GELU. */
  | {
      readonly kind: 'linear';
      readonly value: Value;
      readonly linear: Value;
      readonly gelu: boolean;
    }
  /** `residual + gate ⊙ (W·x + b)`, in the place of the residual. */
  | {
      readonly kind: 'residual';
      readonly value: Value;
      readonly linear: Value;
      readonly residual: Value;
      readonly gate: Value | null;
    }
  /** `factor ⊙ (W·x + b)`, in the place of the factor. */
  | {
      readonly kind: 'product';
      readonly value: Value;
      readonly linear: Value;
      readonly factor: Value;
    }
  | { readonly kind: 'layerNorm'; readonly value: Value; readonly norm: Value }
  /** RMS norm and rotary embedding, in the place of the rows or into heads. */
  | {
      readonly kind: 'headRows';
      readonly value: Value;
      readonly norm: Value;
      readonly rotary: Value | null;
    }
  /** RMS norm of rows that stay. */
  | { readonly kind: 'rmsNorm'; readonly value: Value }
  | { readonly kind: 'attention'; readonly value: Value }
  /** A number for each head and pair of rows. */
  | { readonly kind: 'gatherHeads'; readonly value: Value }
  /** `a + b` or `a − b`; in the place of b where that is what b is updated to. */
  | { readonly kind: 'sum'; readonly value: Value; readonly inPlace: boolean }
  /** A function of the elements at one place, in f32. */
  | { readonly kind: 'pointwise'; readonly value: Value }
  /** A view: no kernel. */
  | { readonly kind: 'row'; readonly value: Value };

/**
 * Covers the calls of a pass with patterns, in an order of computation. From the last value to the first, each takes
 * the longest pattern that ends in it (maximal munch): from the front one does not see that a sum is an epilogue.
 *
 * @param later the passes behind it
 * @throws Refusal for a call without a kernel
 */
export function matchPatterns(graph: Graph, pass: Pass, later: readonly Pass[]): Match[] {
  const inside = new Set(pass.values);
  const uses = new Map<Value, number>();
  for (const value of [...pass.values.flatMap(({ operands }) => operands), ...pass.results]) {
    uses.set(value, (uses.get(value) ?? 0) + 1);
  }
  /** A value of this pass that only one call reads. */
  const single = (value: Value | undefined, op: Value['call']['op']): Value | null =>
    value && inside.has(value) && value.call.op === op && uses.get(value) === 1 ? value : null;

  const absorbed = new Set<Value>();
  const matches: Match[] = [];
  for (const value of pass.values.toReversed()) {
    if (absorbed.has(value)) continue;
    const match = longest(graph, value, single);
    if (match.kind === 'residual') requireLastRead(graph, pass, later, value, match.residual);
    if (match.kind === 'product') requireLastRead(graph, pass, later, value, match.factor);
    if (match.kind === 'sum' && match.inPlace) {
      requireLastRead(graph, pass, later, value, operandOf(value, 1));
    }
    for (const part of partsOf(match)) absorbed.add(part);
    matches.push(match);
  }
  return matches.reverse();
}

function longest(
  graph: Graph,
  value: Value,
  single: (value: Value | undefined, op: Value['call']['op']) => Value | null,
): Match {
  const { call, operands } = value;
  const [a, b] = operands;
  switch (call.op) {
    case 'add': {
      const product = single(b, 'mul');
      const linear = single(product?.operands[0], 'linear') ?? single(b, 'linear');
      if (a && linear && hasRows(value)) {
        return { kind: 'residual', value, linear, residual: a, gate: product?.operands[1] ?? null };
      }
      return { kind: 'sum', value, inPlace: isUpdateOf(graph, b, value) };
    }
    case 'mul': {
      const linear = single(b, 'linear');
      if (a && linear && hasRows(value)) return { kind: 'product', value, linear, factor: a };
      break;
    }
    case 'sub':
      return { kind: 'sum', value, inPlace: isUpdateOf(graph, b, value) };
    case 'gelu': {
      const linear = single(a, 'linear');
      if (linear) return { kind: 'linear', value, linear, gelu: true };
      break;
    }
    case 'linear':
      return { kind: 'linear', value, linear: value, gelu: false };
    case 'modulate': {
      const norm = single(a, 'layerNorm');
      if (norm) return { kind: 'layerNorm', value, norm };
      break;
    }
    case 'rotary': {
      const norm = single(a, 'rmsNorm');
      if (norm && single(norm.operands[0], 'linear')) {
        return { kind: 'headRows', value, norm, rotary: value };
      }
      break;
    }
    case 'rmsNorm':
      if (single(a, 'linear')) return { kind: 'headRows', value, norm: value, rotary: null };
      return { kind: 'rmsNorm', value };
    case 'attention':
      return { kind: 'attention', value };
    case 'gatherHeads':
      return { kind: 'gatherHeads', value };
    case 'geluErf':
    case 'silu':
    case 'weightedSum':
      return { kind: 'pointwise', value };
    case 'row':
      return { kind: 'row', value };
  }
  throw new Refusal(graph.name, call.op, 'has no kernel where it stands');
}

/** Values that a match computes on the way to its own. */
export function partsOf(match: Match): readonly Value[] {
  switch (match.kind) {
    case 'linear':
      return match.linear === match.value ? [] : [match.linear];
    case 'residual':
      return [match.linear, ...(match.gate ? [operandOf(match.value, 1)] : [])];
    case 'product':
      return [match.linear];
    case 'layerNorm':
      return [match.norm];
    case 'headRows':
      return match.rotary ? [match.norm] : [];
    default:
      return [];
  }
}

/** Whether a value has rows of tokens or of a text; tables have a known number of rows. */
function hasRows({ dims }: Value): boolean {
  return typeof dims[0] === 'string';
}

function isUpdateOf(graph: Graph, input: Value | undefined, value: Value): boolean {
  return input !== undefined && graph.updates.get(input) === value;
}

/** Refuses to replace what is read again, or what the caller does not let be replaced. */
function requireLastRead(
  graph: Graph,
  pass: Pass,
  later: readonly Pass[],
  value: Value,
  replaced: Value,
): void {
  const after = pass.values.slice(pass.values.indexOf(value) + 1);
  const readers = [...after, ...later.flatMap(({ values }) => values)];
  const isFree = replaced.call.op !== 'input' || graph.updates.has(replaced);
  if (isFree && !readers.some(({ operands }) => operands.includes(replaced))) return;
  throw new Refusal(graph.name, value.call.op, 'would replace a value that is still needed');
}

export function operandOf({ call, operands }: Value, index: number): Value {
  const operand = operands[index];
  if (!operand) throw new TypeError(`${call.op} has no operand ${index}`);
  return operand;
}

/** The attention that reads a value, and whether it reads all rows at once; null where none does. */
export function attentionOf(graph: Graph, value: Value): { heads: number; whole: boolean } | null {
  for (const reader of graph.values) {
    const { call, operands } = reader;
    if (call.op !== 'attention' || !operands.includes(value)) continue;
    const whole = hasTokenRows(value) && wholeOperands(reader).includes(value);
    return { heads: call.heads, whole };
  }
  return null;
}

import { wholeOperands } from './calls';
import { type Graph, hasTokenRows, type Value } from './graph';

/** A part of a graph that runs as a whole. */
export interface Pass {
  /** Once; once for each class of tokens, of which a chunk has one; or for one chunk of rows after another. */
  readonly kind: 'once' | 'class' | 'rows';
  /** What it computes, in order, without inputs and without what earlier passes have stored. */
  readonly values: readonly Value[];
  /** What later passes read of it, and outputs and updates of the graph. */
  readonly results: readonly Value[];
}

/**
 * Cuts a graph into passes: first what has no rows of tokens, then the rows, in as many passes as some value is
 * needed whole before they go on (keys and values of an attention). A pass computes what its results need; what is
 * cheap and needed in two passes is computed twice.
 *
 * @param classed names of inputs that have a tensor for each class of tokens
 * @throws TypeError where a linear layer or an attention would be computed twice
 */
export function cut(graph: Graph, classed: ReadonlySet<string> = new Set()): Pass[] {
  const stages = stagesOf(graph);
  const ofClass = new Set<Value>();
  for (const value of graph.values) {
    const { call, operands } = value;
    const own = call.op === 'input' ? classed.has(call.name) : operands.some((x) => ofClass.has(x));
    if (own) ofClass.add(value);
  }

  const stored = storedValues(graph);
  const done = new Set(graph.values.filter(({ call }) => call.op === 'input'));
  const computed = new Set<Value>();
  const passes: Pass[] = [];
  const append = (kind: Pass['kind'], results: readonly Value[]) => {
    if (results.length === 0) return;
    const needed = new Set<Value>();
    const need = (value: Value): void => {
      if (done.has(value) || needed.has(value)) return;
      const { op } = value.call;
      if (computed.has(value) && (op === 'linear' || op === 'attention')) {
        throw new TypeError(`${graph.name}: ${op} would be computed twice`);
      }
      needed.add(value);
      value.operands.forEach(need);
    };
    results.forEach(need);
    passes.push({ kind, values: graph.values.filter((value) => needed.has(value)), results });
    for (const value of needed) computed.add(value);
    for (const value of results) done.add(value);
  };
  const last = Math.max(...stages.values());
  for (let stage = 0; stage <= last; stage++) {
    const results = graph.values.filter(
      (value) => stored.has(value) && stages.get(value) === stage && !done.has(value),
    );
    if (stage > 0) append('rows', results);
    else {
      append(
        'once',
        results.filter((value) => !ofClass.has(value)),
      );
      append(
        'class',
        results.filter((value) => ofClass.has(value)),
      );
    }
  }
  return passes;
}

/** By value: 0 without rows of tokens; else the number of the pass over the rows that can compute it. */
function stagesOf(graph: Graph): ReadonlyMap<Value, number> {
  const stages = new Map<Value, number>();
  const stageOf = (value: Value) => stages.get(value) ?? 0;
  for (const value of graph.values) {
    const whole = wholeOperands(value).filter(hasTokenRows);
    stages.set(
      value,
      Math.max(
        hasTokenRows(value) ? 1 : 0,
        ...value.operands.map(stageOf),
        ...whole.map((operand) => stageOf(operand) + 1),
      ),
    );
  }
  return stages;
}

/** What has to be in memory between passes: results of the graph, whole rows, and what rows read beside rows. */
function storedValues(graph: Graph): ReadonlySet<Value> {
  const stored = new Set(graph.updates.values());
  for (const { value } of graph.outputs.values()) stored.add(value);
  for (const value of graph.values) {
    for (const operand of wholeOperands(value)) stored.add(operand);
    if (!hasTokenRows(value)) continue;
    for (const operand of value.operands) if (!hasTokenRows(operand)) stored.add(operand);
  }
  return stored;
}

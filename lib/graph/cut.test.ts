import { expect, test } from 'vitest';
import { add, attention, cut, Graph, layerNorm, linear, modulate, row, sub } from '.';

const layer = (name: string, width = 4) => ({
  name,
  inFeatures: width,
  outFeatures: width,
  bits: null,
  bias: false,
  lora: false as const,
});

/** Of each pass: its kind, the calls of its values, and of its results. */
function passesOf(graph: Graph, classed: readonly string[] = []) {
  return cut(graph, new Set(classed)).map(({ kind, values, results }) => [
    kind,
    values.map(({ call }) => call.op).join(' '),
    results.map(({ call }) => call.op).join(' '),
  ]);
}

test('keys and values are whole before the queries attend; the norm before both is computed twice', () => {
  const g = new Graph('self-attention');
  const x = g.input('x', ['S', 4]);
  const table = add(g.input('table', [2, 4]), g.input('time', [2, 4]));
  const y = modulate(layerNorm(x, 1e-6), row(table, 0), row(table, 1));
  const [k, v] = [linear(y, layer('k')), linear(y, layer('v'))];
  g.update(x, add(x, attention(linear(y, layer('q')), k, v, { heads: 2 })));
  const rows = [
    ['rows', 'layerNorm modulate linear linear', 'linear linear'],
    ['rows', 'layerNorm modulate linear attention add', 'add'],
  ];
  expect(passesOf(g)).toEqual([['once', 'add row row', 'row row'], ...rows]);
  // With a tensor for each class of tokens its first pass is done for each.
  expect(passesOf(g, ['time'])).toEqual([['class', 'add row row', 'row row'], ...rows]);
});

test('what has neither rows nor a class is computed once beside what has a class', () => {
  const g = new Graph('cross-attention');
  const x = g.input('x', ['S', 4]);
  const text = g.input('text', ['T', 4]);
  const [k, v] = [linear(text, layer('k')), linear(text, layer('v'))];
  const shift = row(add(g.input('table', [1, 4]), g.input('time', [1, 4])), 0);
  g.output('y', add(attention(x, k, v, { heads: 1 }), shift));
  expect(passesOf(g, ['time'])).toEqual([
    ['once', 'linear linear', 'linear linear'],
    ['class', 'add row', 'row'],
    ['rows', 'attention add', 'add'],
  ]);
});

test('a linear layer whose result two passes need is refused', () => {
  const g = new Graph('twice');
  const x = g.input('x', ['S', 4]);
  const shared = linear(x, layer('shared'));
  const k = add(shared, x);
  g.output('y', add(attention(x, k, k, { heads: 1 }), shared));
  expect(() => cut(g)).toThrow('twice: linear would be computed twice');
});

test('calls refuse operands that do not fit or are of another graph', () => {
  const g = new Graph('g');
  const x = g.input('x', ['S', 4]);
  expect(() => linear(x, layer('wide', 8))).toThrow('wide: [S, 4] must have 8 columns');
  expect(() => modulate(x, x, x)).toThrow('only a layer norm is modulated');
  expect(() => row(x, 0)).toThrow('[S, 4] has no row 0');
  expect(() => sub(x, new Graph('other').input('y', ['S', 4]))).toThrow('g: sub reads another');
  expect(() => g.update(add(x, x), x)).toThrow('g: only inputs are updated');
});

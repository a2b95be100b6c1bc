import {
  add,
  affine,
  attention,
  Graph,
  gatherHeads,
  gelu,
  geluErf,
  layerNorm,
  linear,
  modulate,
  mul,
  rmsNorm,
  rotary,
  row,
  silu,
  sub,
  weightedSum,
} from '../../../graph';
import { type Backend, type DeviceTensor, elementCount, Scope } from '../..';
import { type GraphSizes, placeholderBindings } from '../../compiler/placeholders';
import { openExecutor } from '../../compiler/target';
import { layer as layerOf } from '../../compiler/testing/block';
import type { Bound } from '../../executor';
import { relativeRms } from '../../self-test';
import { SimdTokens } from '../simd-tokens';

/** Neither tokens nor sizes are multiples of a tile or a vector, but for heads. */
const [width, inner, text, heads] = [64, 52, 5, 4];
const chunks = [
  { start: 0, count: 3, class: 1 },
  { start: 3, count: 101, class: 0 },
  { start: 104, count: 7, class: 0 },
];
const sizes: GraphSizes = {
  chunks,
  sizes: { T: text },
  classed: new Set(['time']),
  ranks: new Map([['q', [3]]]),
};

function layer(name: string, more: Parameters<typeof layerOf>[1] = {}) {
  return layerOf(name, { inFeatures: width, outFeatures: width, bits: null, ...more });
}

/** Attention of tokens to each other and to a text, and a network behind it, gated by rows of tables. */
function block(): Graph {
  const g = new Graph('block');
  const x = g.input('x', ['S', width]);
  const table = add(g.input('table', [6, width]), g.input('time', [6, width]));
  const angles = ['cos', 'sin'].map((name) => g.input(name, ['S', width / heads / 2]));
  const rotated = (name: string, more = {}) =>
    rotary(
      rmsNorm(linear(y, layer(name, more)), g.input(`${name} weight`, [width]), 1e-6),
      angles[0] as typeof x,
      angles[1] as typeof x,
      heads,
    );
  const y = modulate(layerNorm(x, 1e-6), row(table, 0), row(table, 1));
  const attended = attention(
    rotated('q', { lora: 'f32' }),
    rotated('k', { bits: 8 }),
    linear(y, layer('v', { bits: 4, bias: false })),
    { heads },
  );
  const after = add(x, mul(linear(attended, layer('out')), row(table, 2)));
  const states = g.input('text', ['T', width]);
  const read = attention(
    linear(
      affine(layerNorm(after, 1e-6), g.input('w', [width]), g.input('b', [width])),
      layer('q2'),
    ),
    linear(states, layer('k2')),
    linear(states, layer('v2')),
    { heads, lastBias: 'last' },
  );
  const both = add(after, linear(read, layer('out2')));
  const z = modulate(layerNorm(both, 1e-6), row(table, 3), row(table, 4));
  const hidden = gelu(linear(z, layer('up', { outFeatures: inner })));
  const down = linear(hidden, layer('down', { inFeatures: inner }));
  g.update(x, add(both, mul(down, row(table, 5))));
  return g;
}

/** Rows of a text, a bias for each head, a product of layers, and sums. */
function encoder(): Graph {
  const g = new Graph('encoder');
  const x = g.input('x', ['T', width]);
  const normed = rmsNorm(x, g.input('weight', [width]), 1e-6);
  const [q, k, v] = ['q', 'k', 'v'].map((name) => linear(normed, layer(name)));
  const bias = gatherHeads(g.input('buckets', [32, heads]), g.input('indices', ['T', 'T']));
  const attended = attention(q as typeof x, k as typeof x, v as typeof x, {
    heads,
    scale: 1,
    bias,
  });
  const after = add(x, linear(attended, layer('out')));
  const hidden = gelu(linear(after, layer('gate', { outFeatures: inner })));
  const product = mul(hidden, linear(after, layer('up', { outFeatures: inner })));
  const y = add(after, linear(product, layer('down', { inFeatures: inner })));
  g.update(x, y);
  g.output('sum', weightedSum([2, y], ['factor', silu(g.input('other', ['T', width]))]));
  g.output('difference', sub(geluErf(y), g.input('third', ['T', width])));
  return g;
}

const noise = (count: number, seed: number) =>
  Float32Array.from({ length: count }, (_, i) => Math.sin(12.9898 * (i + 1) + 78.233 * seed));

/** A graph's inputs, outputs and weights, filled. */
function bindingsIn(scope: Scope, graph: Graph): Record<string, Bound> {
  let seed = 0;
  const fill = (name: string, { dtype, dims }: DeviceTensor): DeviceTensor => {
    seed += 1;
    const values = noise(elementCount(dims), seed);
    const bytes = () => Uint8Array.from(values, (v) => 128 + 127 * v);
    if (dtype === 'uint8') return scope.tensor('uint8', dims, 'weights', bytes());
    if (name === 'indices') {
      return scope.tensor(
        'int32',
        dims,
        'weights',
        Int32Array.from(values, (v) => 16 + 15 * v),
      );
    }
    const factor = name.endsWith('scales') ? 5e-3 : 1;
    return scope.float32(
      dims,
      'weights',
      values.map((v) => factor * v),
    );
  };
  const [empty = {}] = placeholderBindings(graph, sizes);
  return Object.fromEntries(
    Object.entries(empty).map(([name, bound]) => [
      name,
      Array.isArray(bound)
        ? bound.map((each: DeviceTensor) => fill(name, each))
        : typeof bound === 'number'
          ? 1.5
          : fill(name, bound as DeviceTensor),
    ]),
  );
}

/** Results of two runs, between which a weight is replaced. */
async function results(backend: Backend, graph: Graph, names: readonly string[], weight: string) {
  const scope = new Scope(backend);
  const executor = await openExecutor(backend, [graph], sizes);
  const bindings = bindingsIn(scope, graph);
  await executor.run(graph, bindings, chunks);
  const replaced = bindings[weight] as DeviceTensor<'float32'>;
  backend.write(replaced, noise(elementCount(replaced.dims), 0.5));
  await executor.run(graph, bindings, chunks);
  const read = await Promise.all(
    names.map((name) => backend.read(bindings[name] as DeviceTensor<'float32'>)),
  );
  executor.dispose();
  scope.dispose();
  return { read, isOurs: executor instanceof SimdTokens };
}

/** Relative errors of results, against the runtime. */
export async function oddTokenErrors(backend: Backend): Promise<readonly number[]> {
  const errors: number[] = [];
  for (const [graph, names, weight] of [
    [block(), ['x'], 'q.weight'],
    [encoder(), ['x', 'sum', 'difference'], 'gate.weight'],
  ] as const) {
    backend.runtimeOnly = false;
    const ours = await results(backend, graph, names, weight);
    backend.runtimeOnly = true;
    const theirs = await results(backend, graph, names, weight);
    if (!ours.isOurs || theirs.isOurs) throw new TypeError('one executor computed both');
    errors.push(...ours.read.map((values, i) => relativeRms(values, theirs.read[i] ?? [])));
  }
  return errors;
}

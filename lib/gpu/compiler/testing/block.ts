import {
  add,
  attention,
  Graph,
  type LinearLayer,
  layerNorm,
  linear,
  modulate,
  mul,
  row,
} from '../../../graph';
import type { CompileOptions } from '..';

export const width = 256;
export const tile = {
  rows: 32,
  columns: 32,
  threadRows: 4,
  threadColumns: 4,
  shared: 'f32',
} as const;

/** Nine chunks of tokens, the first of another class. */
export const options: CompileOptions = {
  kernels: {
    linear: tile,
    attention: { queries: 32, keys: 64, shared: 'f32' },
    fastLinear: null,
    fastAttention: null,
    matrixAttention: null,
    storage: 'f16',
  },
  limits: { workgroupBytes: 2 ** 14, threads: 256, bindingBytes: 2 ** 27, storageBuffers: 8 },
  chunks: Array.from({ length: 9 }, (_, i) => ({
    start: 60 * i,
    count: 60,
    class: i === 0 ? 1 : 0,
  })),
  sizes: {},
  classed: new Set(['time']),
  ranks: new Map(),
};

/** The same with 8-bit products. */
export const fastOptions: CompileOptions = {
  ...options,
  kernels: { ...options.kernels, fastLinear: tile, fastAttention: options.kernels.attention },
};

/** The same with the attention on matrix units. */
export const matrixOptions: CompileOptions = {
  ...options,
  kernels: {
    ...options.kernels,
    matrixAttention: {
      m: 16,
      n: 16,
      k: 16,
      queries: 64,
      keys: 32,
      parts: 4,
      subgroupSize: 32,
    },
  },
};

/** Bindings that see the keys of one head: 544 rows of 256 bytes, four more than there are tokens. */
export function oneHead(of: CompileOptions): CompileOptions {
  return { ...of, limits: { ...of.limits, bindingBytes: 544 * 256 } };
}

export const layer = (name: string, more: Partial<LinearLayer> = {}): LinearLayer => ({
  name,
  inFeatures: width,
  outFeatures: width,
  bits: 8,
  bias: true,
  lora: false,
  ...more,
});

/** Attention of tokens to each other, gated by a row of a table that has two classes. */
export function block(heads = 2, more: Partial<LinearLayer> = {}): Graph {
  const g = new Graph('block');
  const x = g.input('x', ['S', width]);
  const table = add(g.input('table', [3, width]), g.input('time', [3, width]));
  const y = modulate(layerNorm(x, 1e-6), row(table, 0), row(table, 1));
  const [k, v] = [linear(y, layer('k', more)), linear(y, layer('v', more))];
  const attended = attention(linear(y, layer('q')), k, v, { heads });
  g.update(x, add(x, mul(linear(attended, layer('out')), row(table, 2))));
  return g;
}

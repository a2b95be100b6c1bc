/** @module-tag full */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Backend, type Bindings, createBackend, Scope } from '../../gpu';
import { type Graph, GraphBuilder, gemm, matMulBlocks, multiHeadAttention } from '../../onnx';
import { gaussianNoise } from '../../pipeline/noise';
import { httpFolder } from '../../weights';
import { measureChunkTokens } from './chunk-size';
import { readModelConfig } from './model-config';

let backend: Backend;
beforeAll(async () => {
  backend = await createBackend('webgpu');
});
afterAll(() => backend.dispose());

/** The 5B's width inside, and parts of its frames of 880 tokens. */
const [width, outputs, keys, headed] = [3072, 64, 440, 128] as const;
const rowCounts = [55, 110, 440];
const compared = 55;

interface Kernel {
  readonly graph: Graph;
  readonly weights: (scope: Scope) => Bindings;
  /** Shape of so many rows, in and out. */
  readonly shape: (rows: number) => readonly number[];
  readonly result: (rows: number) => readonly number[];
}

const values = (stream: number, count: number) => gaussianNoise({ seed: 1, stream, count });

function product(bits: 4 | 8 | null): Kernel {
  const g = new GraphBuilder(`product-${bits}`);
  const x = g.input('x', 'float32', ['L', width]);
  const blocks = [outputs, width / 32] as const;
  g.output(
    'y',
    bits === null
      ? gemm(x, g.input('w', 'float32', [outputs, width]), null)
      : matMulBlocks(
          x,
          g.input('w', 'uint8', [...blocks, 4 * bits]),
          g.input('s', 'float32', [...blocks]),
          null,
          bits,
        ),
  );
  const bytes = (count: number) => Uint8Array.from({ length: count }, (_, i) => (i * 7919) % 251);
  return {
    graph: g.build(),
    weights: (scope) =>
      bits === null
        ? { w: scope.float32([outputs, width], 'weights', values(1, outputs * width)) }
        : {
            w: scope.tensor(
              'uint8',
              [...blocks, 4 * bits],
              'weights',
              bytes((outputs * width * bits) / 8),
            ),
            s: scope.float32([...blocks], 'weights', values(2, (outputs * width) / 32)),
          },
    shape: (rows) => [rows, width],
    result: (rows) => [rows, outputs],
  };
}

function attention(): Kernel {
  const g = new GraphBuilder('attention');
  const x = g.input('x', 'float32', [1, 'L', headed]);
  const k = g.input('k', 'float32', [1, 'S', headed]);
  const v = g.input('v', 'float32', [1, 'S', headed]);
  g.output('y', multiHeadAttention(x, k, v, { heads: 1, scale: 1 / Math.sqrt(headed) }));
  return {
    graph: g.build(),
    weights: (scope) => ({
      k: scope.float32([1, keys, headed], 'activations', values(3, keys * headed)),
      v: scope.float32([1, keys, headed], 'activations', values(4, keys * headed)),
    }),
    shape: (rows) => [1, rows, headed],
    result: (rows) => [1, rows, headed],
  };
}

test.each([
  ['8-bit product', product(8)],
  ['4-bit product', product(4)],
  ['plain product', product(null)],
  ['attention', attention()],
])('a row of a chunk has the same bits whatever its size: %s', async (_, kernel) => {
  const scope = new Scope(backend);
  const weights = kernel.weights(scope);
  const count = kernel.shape(keys).reduce((a, b) => a * b);
  const data = values(5, count);
  const results: Float32Array[] = [];
  for (const rows of rowCounts) {
    const part = data.subarray(0, (count / keys) * rows);
    const x = scope.float32(kernel.shape(rows), 'activations', part);
    const y = scope.float32(kernel.result(rows), 'activations');
    await backend.run(kernel.graph, { x, ...weights }, { y });
    const all = await backend.read(y);
    results.push(all.subarray(0, (all.length / rows) * compared));
  }
  scope.dispose();
  const [first] = results;
  expect(first?.some((value) => value !== 0)).toBe(true);
  for (const result of results) expect(result).toEqual(first);
});

test('the chunk size is measured once per device and leaves nothing there', async () => {
  await backend.releaseSessions();
  const folder = httpFolder(
    new URL('/lib/models/wan/goldens/tiny-wan22-ti2v/model/', location.href),
  );
  const { transformer } = await readModelConfig(folder);
  const tokens = await measureChunkTokens(backend, transformer, 300);
  expect([64, 128, 256, 512, 1024, 2048, 4096]).toContain(tokens);
  const { allocations } = backend.counters();
  expect(await measureChunkTokens(backend, transformer, 300)).toBe(tokens);
  expect(backend.counters().allocations).toBe(allocations);
  await backend.releaseSessions();
  expect(backend.counters().liveBytes).toBe(0);
});

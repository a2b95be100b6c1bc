import * as ort from 'onnxruntime-web';
import { expect, test } from 'vitest';
import { attention, Graph } from '../../graph';
import { type Runtime, RuntimeExecutor, WasmBackend } from '..';
import { openExecutor } from '../compiler/target';
import { oddTokenErrors } from './testing/odd-tokens';

test('vectors compute tokens and texts as the runtime does, without fused products', async () => {
  const backend = new WasmBackend(() => ort as unknown as Runtime);
  const errors = await oddTokenErrors(backend);
  expect(errors).toHaveLength(4);
  expect(Math.max(...errors)).toBeLessThan(1e-5);
  expect(backend.counters().liveBytes).toBe(0);
});

test('the runtime computes a graph of which the vectors do not compute a call', async () => {
  const g = new Graph('narrow heads');
  const x = g.input('x', ['T', 64]);
  g.output('y', attention(x, x, x, { heads: 16 }));
  const backend = new WasmBackend(() => ort as unknown as Runtime);
  const sizes = { chunks: [], sizes: {}, classed: new Set<string>(), ranks: new Map() };
  expect(await openExecutor(backend, [g], sizes)).toBeInstanceOf(RuntimeExecutor);
});

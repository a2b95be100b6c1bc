import * as ort from 'onnxruntime-web';
import { expect, test } from 'vitest';
import { add, attention, Graph, layerNorm, linear, modulate, row } from '../../graph';
import { type Backend, type DeviceTensor, type Runtime, WasmBackend } from '..';
import type { RowChunk } from '../executor';
import { RuntimeExecutor } from './executor';

const [tokens, width] = [11, 8];
const noise = (count: number, seed: number) =>
  Float32Array.from({ length: count }, (_, i) => Math.sin(12.9898 * (i + 1) + 78.233 * seed));

/** A residual block with self-attention, attention to two rows of text, and a table for each class of tokens. */
function block(): Graph {
  const g = new Graph('block');
  const layer = (name: string) => ({
    name,
    inFeatures: width,
    outFeatures: width,
    bits: null,
    bias: true,
    lora: false as const,
  });
  const x = g.input('x', ['S', width]);
  const table = add(g.input('table', [2, width]), g.input('time', [2, width]));
  const y = modulate(layerNorm(x, 1e-6), row(table, 0), row(table, 1));
  const [k, v] = [linear(y, layer('k')), linear(y, layer('v'))];
  const after = add(x, attention(linear(y, layer('q')), k, v, { heads: 2 }));
  const text = g.input('text', ['T', width]);
  const read = attention(after, text, text, { heads: 2, lastBias: 'last' });
  g.update(x, add(after, read));
  g.output('read', read);
  return g;
}

async function run(backend: Backend, chunks: readonly RowChunk[], last = 1.5) {
  const tensors: DeviceTensor[] = [];
  const made = (dims: readonly number[], seed: number) => {
    const data = noise(
      dims.reduce((a, b) => a * b, 1),
      seed,
    );
    const tensor = backend.tensor('float32', dims, 'activations', data);
    tensors.push(tensor);
    return tensor;
  };
  const weights = ['q', 'k', 'v'].flatMap((name, i) => [
    [`${name}.weight`, made([width, width], 10 + i)],
    [`${name}.bias`, made([width], 20 + i)],
  ]);
  const x = made([tokens, width], 1);
  const executor = new RuntimeExecutor(backend);
  const bindings = {
    x,
    table: made([2, width], 2),
    text: made([2, width], 3),
    last,
    time: [made([2, width], 4), made([2, width], 5)],
    // Its first row is one before the clip's.
    read: { tensor: made([tokens + 1, width], 6), first: -1 },
    ...Object.fromEntries(weights),
  };
  await executor.run(block(), bindings, chunks);
  const result = await backend.read(x);
  executor.dispose();
  for (const tensor of tensors) tensor.dispose();
  expect(backend.counters().liveBytes).toBe(0);
  return result;
}

const cpu = () => new WasmBackend(() => ort as unknown as Runtime);
/** Two classes; the rows of one are cut at any place. */
const chunks = (...cuts: readonly number[]): RowChunk[] =>
  [0, 3, ...cuts].map((start, i, starts) => ({
    start,
    count: (starts[i + 1] ?? tokens) - start,
    class: start < 3 ? 1 : 0,
  }));

test('neither chunks nor memory without offsets change a bit', async () => {
  const whole = await run(cpu(), chunks());
  expect(await run(cpu(), chunks(4, 9))).toEqual(whole);
  const withoutViews = cpu();
  withoutViews.rows = (() => null) as unknown as typeof withoutViews.rows;
  expect(await run(withoutViews, chunks(5))).toEqual(whole);
});

test('the class of a chunk and the number of the last key count', async () => {
  const whole = await run(cpu(), chunks());
  const oneClass = chunks().map((chunk) => ({ ...chunk, class: 0 }));
  const other = await run(cpu(), oneClass);
  // Rows of the other class differ, and all rows see their keys.
  expect(other.slice(0, 3 * width)).not.toEqual(whole.slice(0, 3 * width));
  expect(await run(cpu(), chunks(), 0)).not.toEqual(whole);
});

test('what is not bound, or not for a class, is named', async () => {
  const executor = new RuntimeExecutor(cpu());
  const g = new Graph('sum');
  const [a, b] = [g.input('a', ['S', 2]), g.input('b', [2])];
  g.output('y', add(a, b));
  const tensor = executor.backend.tensor('float32', [3, 2], 'activations');
  const one = [{ start: 0, count: 3, class: 0 }];
  await expect(executor.run(g, { a: tensor, y: tensor }, one)).rejects.toThrow(
    'sum: b is not bound',
  );
  await expect(executor.run(g, { a: tensor, b: [], y: tensor }, one)).rejects.toThrow('class 0');
  await expect(executor.run(g, { a: tensor, b: 1, y: tensor }, one)).rejects.toThrow('a number');
});

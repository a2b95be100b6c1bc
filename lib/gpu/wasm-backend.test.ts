import * as ort from 'onnxruntime-web';
import { afterAll, expect, test } from 'vitest';
import { add, GraphBuilder } from '../onnx';
import { type Runtime, Scope, WasmBackend } from '.';

const backend = new WasmBackend(() => ort as unknown as Runtime);
afterAll(() => backend.dispose());

/** y = a + b by broadcasting: L² numbers of 2·L. */
function outerGraph() {
  const g = new GraphBuilder('outer');
  const a = g.input('a', 'float32', ['L', 1]);
  const b = g.input('b', 'float32', [1, 'L']);
  g.output('y', add(a, b));
  return g.build();
}

test.each([
  ['sizes that overflow', 33_000],
  ['more elements than can be counted', 70_000],
])('%s are OUT_OF_MEMORY, and the next run computes', async (_, length) => {
  const scope = new Scope(backend);
  const vector = (dims: readonly number[]) => scope.float32(dims, 'activations');
  // The result would not fit a typed array here either, so a view of less stands for it.
  const y = Object.assign(vector([1, 1]), { dims: [length, length] });
  const inputs = { a: vector([length, 1]), b: vector([1, length]) };
  await expect(backend.run(outerGraph(), inputs, { y })).rejects.toMatchObject({
    code: 'OUT_OF_MEMORY',
    message: expect.stringContaining('The CPU backend cannot hold what the step "outer" needs'),
  });
  const sum = vector([2, 2]);
  const a = scope.float32([2, 1], 'activations', Float32Array.of(1, 2));
  const b = scope.float32([1, 2], 'activations', Float32Array.of(10, 20));
  await backend.run(outerGraph(), { a, b }, { y: sum });
  expect([...(await backend.read(sum))]).toEqual([11, 21, 12, 22]);
  scope.dispose();
});

test('a tensor beyond the longest array is OUT_OF_MEMORY, and nothing is counted', () => {
  expect(() => backend.tensor('float32', [2 ** 20, 2 ** 20], 'activations')).toThrow(
    'The CPU backend cannot hold a tensor of 1099511627776 elements.',
  );
  expect(backend.counters().liveBytes).toBe(0);
});

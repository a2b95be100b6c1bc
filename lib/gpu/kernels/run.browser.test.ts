import { afterAll, expect, test, vi } from 'vitest';
import { add, GraphBuilder } from '../../onnx';
import { createBackend } from '..';
import { Scope } from '../backend';
import { rowView } from './compute';
import { defineKernel } from './kernel';

/** Adds a number to `count` elements in place. */
const increase = defineKernel({
  name: 'increase',
  mode: 'exact',
  bindings: [{ name: 'x', access: 'write', element: 'f32' }],
  uniforms: ['first', 'count', 'amount: f32'],
  threads: 16,
  workgroupBytes: 0,
  body: `
  let index = group * 16u + thread;
  if (index < uniforms.count) { x[uniforms.first + index] += uniforms.amount; }`,
});

const backend = await createBackend('webgpu');
afterAll(() => backend.dispose());
if (!backend.compute) throw new Error('the GPU runs no kernels');
const { compute } = backend;

const job = (x: Parameters<typeof rowView>[0], count: number, amount: number) => ({
  kernel: increase,
  operands: { x },
  uniforms: { first: 0, count, amount },
  groups: Math.ceil(count / 16),
  flops: count,
});

test('a kernel and a graph take turns on one tensor, a hundred times', {
  tags: ['full'],
}, async () => {
  const scope = new Scope(backend);
  const x = scope.float32([1, 3], 'activations', Float32Array.of(1, 2, 3));
  const y = scope.float32([1, 3], 'activations');
  const g = new GraphBuilder('double');
  const input = g.input('x', 'float32', ['L', 3]);
  g.output('y', add(input, input));
  const graph = g.build();
  const expected = [1, 2, 3].map(Math.fround);
  for (let turn = 0; turn < 100; turn++) {
    // Halved before it is doubled, so that the numbers stay small.
    await compute.dispatch([job(x, 3, turn % 2 ? -0.25 : 0.5)]);
    await backend.run(graph, { x }, { y });
    backend.copy(y, 0, x, 0, 3);
    await compute.dispatch([job(x, 3, turn % 2 ? -4 : 1)]);
    expected.forEach((value, i) => {
      expected[i] = Math.fround(
        Math.fround(2 * Math.fround(value + (turn % 2 ? -0.25 : 0.5))) + (turn % 2 ? -4 : 1),
      );
    });
    if (turn % 10 === 9) expected.fill(0);
    if (turn % 10 === 9) backend.write(x, new Float32Array(3));
  }
  expect([...(await backend.read(x))]).toEqual(expected);
  scope.dispose();
});

test('a dispatch that would take too long is split; every group runs once', async () => {
  const scope = new Scope(backend);
  const count = 16 * 1000 - 5;
  const x = scope.float32([count], 'activations');
  compute.rates.set(increase.key, count);
  await compute.dispatch([job(x, count, 1), job(x, count, 2)]);
  compute.rates.delete(increase.key);
  const values = await backend.read(x);
  expect(values.every((value) => value === 3)).toBe(true);
  expect(compute.used).toContain(increase.key);
  expect(compute.unfinished).toEqual([]);
  scope.dispose();
});

test('a kernel of unknown rate gets 6 GFLOP at once, and more when it has shown to be faster', async () => {
  const scope = new Scope(backend);
  const x = scope.float32([16 * 1000], 'activations');
  const unknown = defineKernel({
    ...increase,
    name: 'unknown',
    body: '_ = x[0]; _ = uniforms.first;',
  });
  const one = { ...job(x, 16 * 1000, 1), kernel: unknown, flops: 6e10 };
  const spy = vi.spyOn(GPUComputePassEncoder.prototype, 'dispatchWorkgroups');
  const partsOf = async () => {
    spy.mockClear();
    await compute.dispatch([one]);
    await backend.settle();
    return spy.mock.calls.map(([groups]) => groups);
  };
  const [first, second] = [await partsOf(), await partsOf()];
  spy.mockRestore();
  expect(first[0]).toBe(100);
  expect(second[0]).toBeGreaterThan(100);
  for (const parts of [first, second]) expect(parts.reduce((a, b) => a + b)).toBe(1000);
  scope.dispose();
});

test('a view starts at any row', async () => {
  const scope = new Scope(backend);
  // Rows of 12 bytes: aligned offsets lie at every 64th row.
  const x = scope.float32([200, 3], 'activations');
  const { operand, firstRow } = rowView(x, 130, 7, 12);
  expect(operand.byteOffset).toBe(128 * 12);
  await compute.dispatch([
    {
      kernel: increase,
      operands: { x: operand },
      uniforms: { first: firstRow * 3, count: 21, amount: 1 },
      groups: 2,
      flops: 21,
    },
  ]);
  const values = await backend.read(x);
  const changed = [...values.keys()].filter((i) => values[i] !== 0);
  expect(changed).toEqual(Array.from({ length: 21 }, (_, i) => 130 * 3 + i));
  scope.dispose();
});

test('a kernel that this device cannot run is named with the reason', async () => {
  const broken = defineKernel({ ...increase, name: 'broken', body: 'x[0] = nothing;' });
  const large = defineKernel({ ...increase, name: 'large', threads: 65536, body: 'x[0] = 1.0;' });
  const f16 = defineKernel({ ...increase, name: 'f16', needs: ['no-such-feature'], body: '' });
  const bindings = Array.from({ length: compute.limits.storageBuffers + 1 }, (_, i) => {
    return { name: i === 0 ? 'x' : `x${i}`, access: 'write', element: 'f32' } as const;
  });
  const many = defineKernel({ ...increase, name: 'many', bindings, body: '' });
  const failures = await compute.compile([increase, broken, large, f16, many]);
  expect(failures.map(({ kernel }) => kernel.name)).toEqual(['broken', 'large', 'f16', 'many']);
  expect(failures[0]?.reason).toContain('nothing');
  expect(failures[1]?.reason).toContain('65536 threads');
  expect(failures[2]?.reason).toBe('the device has no no-such-feature');
  expect(failures[3]?.reason).toContain(`${bindings.length} storage buffers`);
});

test('wrong operands and uniforms are a TypeError that names them', async () => {
  const scope = new Scope(backend);
  const x = scope.float32([16], 'activations');
  const good = job(x, 16, 1);
  await expect(compute.dispatch([{ ...good, operands: {} }])).rejects.toThrow('x is not bound');
  await expect(compute.dispatch([{ ...good, uniforms: {} }])).rejects.toThrow(
    'the uniform first is missing',
  );
  await expect(compute.dispatch([{ ...good, operands: { x, y: x } }])).rejects.toThrow(
    'there is no y',
  );
  await expect(compute.dispatch([{ ...good, groups: 0 }])).rejects.toThrow('0 groups');
  x.dispose();
  await expect(compute.dispatch([good])).rejects.toThrow('x was disposed');
});

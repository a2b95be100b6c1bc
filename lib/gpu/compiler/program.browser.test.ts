/** @module-tag full */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Graph, linear, silu, weightedSum } from '../../graph';
import { createBackend } from '..';
import { type Backend, elementCount, Scope } from '../backend';
import type { Bound } from '../executor';
import { RuntimeExecutor } from '../runtime/executor';
import { relativeRms } from '../self-test';
import type { DeviceTensor } from '../tensor';
import { type CompileOptions, Program } from '.';
import { placeholderBindings } from './placeholders';
import { block, fastOptions, layer, oneHead, options, width } from './testing/block';

const noise = (count: number, seed: number) =>
  Float32Array.from({ length: count }, (_, i) => Math.sin(12.9898 * (i + 1) + 78.233 * seed));

describe('a compiled program on a device', () => {
  let backend: Backend;
  beforeAll(async () => {
    backend = await createBackend('webgpu');
  });
  afterAll(() => backend.dispose());

  const graph = block();

  /** A graph's inputs, outputs and weights, filled. */
  function bindingsIn(scope: Scope, of: Graph): Record<string, Bound> {
    let seed = 0;
    const fill = (name: string, { dtype, dims }: DeviceTensor): DeviceTensor => {
      seed += 1;
      const values = noise(elementCount(dims), seed);
      if (dtype === 'uint8') {
        return scope.tensor(
          'uint8',
          dims,
          'weights',
          Uint8Array.from(values, (v) => 128 + 127 * v),
        );
      }
      const factor = name.endsWith('scales') ? 5e-4 : 1;
      return scope.float32(
        dims,
        'weights',
        values.map((v) => factor * v),
      );
    };
    const [empty = {}] = placeholderBindings(of, options);
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

  /** What the block adds to its rows. */
  async function added(of: CompileOptions | null): Promise<Float32Array> {
    const scope = new Scope(backend);
    const executor = of
      ? await new Program([graph], of).open(backend)
      : new RuntimeExecutor(backend);
    try {
      const bindings = bindingsIn(scope, graph);
      const x = bindings.x as DeviceTensor<'float32'>;
      const before = await backend.read(x);
      await executor.run(graph, bindings, options.chunks);
      await executor.finish();
      return (await backend.read(x)).map((value, i) => value - (before[i] ?? 0));
    } finally {
      executor.dispose();
      scope.dispose();
    }
  }

  test('it computes what the runtime computes, whether a binding sees all heads or one', {
    tags: ['full'],
    timeout: 120_000,
  }, async () => {
    const expected = await added(null);
    const exact = await added(options);
    expect(relativeRms(exact, expected)).toBeLessThan(1e-3);
    expect(await added(oneHead(options))).toEqual(exact);
    const fast = await added(fastOptions);
    expect(relativeRms(fast, expected)).toBeLessThan(3e-2);
    // Integers err, so that less would mean that they were not used.
    expect(relativeRms(fast, expected)).toBeGreaterThan(2e-3);
    expect(await added(oneHead(fastOptions))).toEqual(fast);
    await backend.releaseSessions();
    expect(backend.counters().liveBytes).toBe(0);
  });

  test('a row goes through a layer whose weight is larger than a binding, and weighted sums', async () => {
    const g = new Graph('row');
    const wide = layer('wide', { outFeatures: 640, bits: null });
    const y = linear(silu(g.input('x', [1, width])), wide); // [1, 640]
    g.output('y', y);
    g.output('sum', weightedSum([2, y], ['factor', g.input('other', [1, 640])]));
    // 256 rows of the weight.
    const limits = { ...options.limits, bindingBytes: 256 * 4 * width };
    const program = new Program([g], { ...options, limits });
    expect([...program.listWithoutDevice()].flatMap(([, jobs]) => jobs)).toHaveLength(5);
    const scope = new Scope(backend);
    const results: Float32Array[][] = [];
    for (const executor of [new RuntimeExecutor(backend), await program.open(backend)]) {
      const bindings = bindingsIn(scope, g);
      await executor.run(g, bindings);
      const read = (name: string) => backend.read(bindings[name] as DeviceTensor<'float32'>);
      results.push([await read('y'), await read('sum')]);
      executor.dispose();
    }
    scope.dispose();
    const [[y0, sum0] = [], [y1, sum1] = []] = results;
    expect(relativeRms(y1 ?? [], y0 ?? [])).toBeLessThan(1e-6);
    expect(relativeRms(sum1 ?? [], sum0 ?? [])).toBeLessThan(1e-6);
    expect(relativeRms(sum1 ?? [], y1 ?? [])).toBeGreaterThan(0.1);
  });
});

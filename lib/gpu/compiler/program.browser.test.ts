import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createBackend } from '..';
import { type Backend, type DeviceTensor, elementCount, Scope } from '../backend';
import type { Bound } from '../executor';
import { RuntimeExecutor } from '../runtime/executor';
import { relativeRms } from '../self-test';
import { type CompileOptions, Program } from '.';
import { placeholderBindings } from './placeholders';
import { block, fastOptions, oneHead, options } from './testing/block';

const noise = (count: number, seed: number) =>
  Float32Array.from({ length: count }, (_, i) => Math.sin(12.9898 * (i + 1) + 78.233 * seed));

describe('a compiled program on a device', () => {
  let backend: Backend;
  beforeAll(async () => {
    backend = await createBackend('webgpu');
  });
  afterAll(() => backend.dispose());

  const graph = block();

  /** The block's inputs and weights, filled. */
  function bindingsIn(scope: Scope): Record<string, Bound> {
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
    const [empty = {}] = placeholderBindings(graph, options);
    return Object.fromEntries(
      Object.entries(empty).map(([name, bound]) => [
        name,
        Array.isArray(bound)
          ? bound.map((each: DeviceTensor) => fill(name, each))
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
      const bindings = bindingsIn(scope);
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
});

import * as ort from 'onnxruntime-web';
import { afterAll, expect, test } from 'vitest';
import { add, GraphBuilder, linear, rmsNormalization, silu } from '../onnx';
import { type Kernels, type Runtime, Scope, WasmBackend } from '.';

const backend = new WasmBackend(ort as unknown as Runtime);
afterAll(() => backend.dispose());

const plain = {
  inFeatures: 4,
  outFeatures: 4,
  bits: null,
  bias: false,
  lora: false,
  activation: 'none',
  residual: 'none',
} as const;

/** Two linear calls with a norm between them; results under several names, and a node without use. */
function sandwich() {
  const g = new GraphBuilder('sandwich');
  const x = g.input('x', 'float32', ['L', 4]);
  const weight = (name: string) => g.input(name, 'float32', [4, 4]);
  const inner = linear(plain, { x: silu(x), weight: weight('w1') });
  add(inner, inner);
  const normed = rmsNormalization(inner, g.input('gamma', 'float32', [4]), 1e-6);
  const spec = { ...plain, residual: 'added' } as const;
  const outer = linear(spec, { x: normed, weight: weight('w2'), residual: x });
  g.output('inner', inner);
  g.output('again', inner);
  g.output('same', x);
  g.output('outer', outer);
  return g.build();
}

async function run(kernels: Kernels | null) {
  const graph = sandwich();
  const scope = new Scope(backend);
  const numbers = (seed: number) => Float32Array.from({ length: 16 }, (_, i) => Math.sin(i + seed));
  const inputs = {
    x: scope.float32([3, 4], 'activations', numbers(1).slice(0, 12)),
    w1: scope.float32([4, 4], 'weights', numbers(2)),
    w2: scope.float32([4, 4], 'weights', numbers(3)),
    gamma: scope.float32([4], 'weights', Float32Array.of(1, 2, 3, 4)),
  };
  const names = ['inner', 'again', 'same', 'outer'];
  const outputs = Object.fromEntries(
    names.map((name) => [name, scope.float32([3, 4], 'activations')]),
  );
  backend.kernels = kernels;
  try {
    await backend.run(graph, inputs, outputs);
    return await Promise.all(Object.values(outputs).map((tensor) => backend.read(tensor)));
  } finally {
    backend.kernels = null;
    scope.dispose();
  }
}

test('a graph is cut at its calls; equal calls have equal graphs', () => {
  const parts = sandwich().parts?.() ?? [];
  const calls = parts.map(({ call }) => call?.operator ?? null);
  expect(calls).toEqual([null, 'linear', null, 'linear', null]);
  const build = (name: string, rows: string) => {
    const g = new GraphBuilder(name);
    const x = g.input('activation', 'float32', [rows, 4]);
    g.output('y', linear(plain, { x, weight: g.input(`${name}.weight`, 'float32', [4, 4]) }));
    return g.build().parts?.()[0]?.graph.key;
  };
  expect(build('one', 'L')).toBe(build('other', 'T'));
});

test('the parts compute what the graph computes', async () => {
  const whole = await run(null);
  expect(await run({ choice: null, run: async () => false })).toEqual(whole);
  // What is between the parts stays for the next run and is freed with the sessions.
  expect(backend.counters().liveBytes).toBeGreaterThan(0);
  await backend.releaseSessions();
  expect(backend.counters().liveBytes).toBe(0);
});

test('a kernel answers the calls that it can', async () => {
  const seen: unknown[] = [];
  const [inner, , , outer] = await run({
    choice: null,
    run: async (call, inputs, output) => {
      seen.push([call.operator, Object.keys(inputs)]);
      if (call.operator !== 'linear' || call.spec.residual !== 'none') return false;
      backend.write(output, new Float32Array(12));
      return true;
    },
  });
  expect(seen).toEqual([
    ['linear', ['x', 'weight']],
    ['linear', ['x', 'weight', 'residual']],
  ]);
  expect(inner).toEqual(new Float32Array(12));
  // Nothing but the residual is left.
  const [, , same] = await run(null);
  expect(outer).toEqual(same);
});

test('a kernel that fails leaves nothing borrowed', async () => {
  const failing = { choice: null, run: () => Promise.reject(new Error('no such pipeline')) };
  await expect(run(failing)).rejects.toThrow('no such pipeline');
  const [inner] = await run(null);
  expect((await run({ choice: null, run: async () => false }))[0]).toEqual(inner);
  await backend.releaseSessions();
  expect(backend.counters().liveBytes).toBe(0);
});

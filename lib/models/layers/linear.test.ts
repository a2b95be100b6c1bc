import { afterAll, expect, test } from 'vitest';
import { fromBF16, RuntimeExecutor, relativeRms, Scope, toBF16 } from '../../gpu';
import { Graph, linear } from '../../graph';
import { checkpointFrom, f32 } from '../../weights/testing/files';
import { nodeBackend } from '../wan/testing/model';
import { precisionFor, type ReadOptions } from './layer-data';
import { bindLinear, freshMemory, LayerLoader, layerOf } from './linear';

const backend = nodeBackend();
afterAll(() => backend.dispose());

/** Numbers that differ everywhere, in about −1…1. */
const values = (count: number, seed: number) =>
  Array.from({ length: count }, (_, i) => Math.sin(12.9898 * (i + 1) + seed));

const [rows, inner, out] = [3, 64, 5] as const;
const x = Float32Array.from(values(rows * inner, 1));
const weight = values(out * inner, 2);
const bias = values(out, 3);
const checkpoint = await checkpointFrom({
  'layer.weight': f32([out, inner], weight),
  'layer.bias': f32([out], bias),
  'plain.weight': f32([out, inner], weight),
  'narrow.weight': f32([out, 48], values(out * 48, 4)),
});

/** x·Wᵀ + b in double precision; rows of W and b may be reordered. */
function expected(w: ArrayLike<number>, b: ArrayLike<number> | null): Float64Array {
  return Float64Array.from({ length: rows * out }, (_, at) => {
    const [row, column] = [Math.floor(at / out), at % out];
    let sum = b?.[column] ?? 0;
    for (let i = 0; i < inner; i++) sum += (x[row * inner + i] ?? 0) * (w[column * inner + i] ?? 0);
    return sum;
  });
}

async function apply(
  name: string,
  options: ReadOptions,
  layerOptions: Parameters<LayerLoader['linear']>[1] = {},
) {
  const scope = new Scope(backend);
  try {
    const layer = await new LayerLoader(freshMemory(scope), checkpoint, options).linear(
      name,
      layerOptions,
    );
    const weightBytes = backend.counters().categories.weights?.live ?? 0;
    const g = new Graph('layer');
    g.output('y', linear(g.input('x', ['T', inner]), layerOf('it', layer.spec)));
    const y = scope.float32([rows, out], 'activations');
    const bindings = {
      x: scope.float32([rows, inner], 'activations', x),
      ...bindLinear('it', layer),
    };
    await new RuntimeExecutor(backend).run(g, { ...bindings, y });
    return { y: await backend.read(y), spec: layer.spec, weightBytes };
  } finally {
    scope.dispose();
  }
}

test('int8 needs rows of whole blocks', () => {
  expect(precisionFor('int8', 3072)).toBe('int8');
  expect(precisionFor('int8', 48)).toBe('f32');
  expect(precisionFor('f32', 3072)).toBe('f32');
});

test('plain weights give W·x + b', async () => {
  const { y, spec, weightBytes } = await apply('layer', { precision: 'f32' });
  expect(spec).toEqual({
    inFeatures: inner,
    outFeatures: out,
    precision: 'f32',
    bias: true,
    lora: false,
  });
  expect(relativeRms(y, expected(weight, bias))).toBeLessThan(1e-6);
  expect(weightBytes).toBe((out * inner + out) * 4);
});

test('a layer without a bias has none', async () => {
  const { y, spec } = await apply('plain', { precision: 'f32' });
  expect(spec.bias).toBe(false);
  expect(relativeRms(y, expected(weight, null))).toBeLessThan(1e-6);
});

test('8-bit blocks come within their rounding, in a quarter of the memory', async () => {
  const { y, spec, weightBytes } = await apply('layer', { precision: 'int8' });
  expect(spec.precision).toBe('int8');
  const error = relativeRms(y, expected(weight, bias));
  expect(error).toBeLessThan(1e-2);
  // Not zero: the weights were quantised indeed.
  expect(error).toBeGreaterThan(1e-5);
  expect(weightBytes).toBe(out * inner + out * (inner / 32) * 4 + out * 4);
});

test('a layer can be kept plain, and a narrow one is', async () => {
  const { spec } = await apply('layer', { precision: 'int8' }, { precision: 'f32' });
  expect(spec.precision).toBe('f32');
  const scope = new Scope(backend);
  const narrow = await new LayerLoader(freshMemory(scope), checkpoint, {
    precision: 'int8',
  }).linear('narrow');
  expect(narrow.spec.precision).toBe('f32');
  scope.dispose();
});

test.each([Number.NaN, Number.POSITIVE_INFINITY])('a weight that is %s is named', async (value) => {
  const numbers = weight.with(70, value);
  const broken = await checkpointFrom({ 'blocks.0.q.weight': f32([out, inner], numbers) });
  const scope = new Scope(backend);
  const loading = new LayerLoader(freshMemory(scope), broken, { precision: 'int8' }).linear(
    'blocks.0.q',
  );
  await expect(loading).rejects.toMatchObject({
    code: 'MODEL_FILE_INVALID',
    message: 'The tensor blocks.0.q.weight holds a number that is NaN or infinite.',
  });
  scope.dispose();
});

test.each(['f32', 'int8'] as const)('a LoRA runs beside %s weights', async (precision) => {
  const rank = 2;
  const down = Float32Array.from(values(rank * inner, 5));
  const up = Float32Array.from(values(out * rank, 6));
  const delta = Float32Array.from(values(out, 7));
  const lora = {
    branches: new Map([['layer', { rank, down, up }]]),
    deltas: new Map([['layer.bias', delta]]),
  };
  const { y, spec } = await apply('layer', { precision, lora });
  expect(spec.lora).toBe('f32');
  const merged = weight.map((value, at) => {
    const [row, column] = [Math.floor(at / inner), at % inner];
    let sum = value;
    for (let r = 0; r < rank; r++)
      sum += (up[row * rank + r] ?? 0) * (down[r * inner + column] ?? 0);
    return sum;
  });
  const reference = expected(
    merged,
    bias.map((value, i) => value + (delta[i] ?? 0)),
  );
  expect(relativeRms(y, reference)).toBeLessThan(precision === 'f32' ? 1e-6 : 1e-2);
  // Without the branch it is something else entirely.
  expect(relativeRms(expected(weight, bias), reference)).toBeGreaterThan(0.1);
});

test('factors in bf16 are f32 beside f32 weights and where the runtime reads them', async () => {
  const down = Float32Array.from(values(4 * inner, 5));
  const up = Float32Array.from(values(out * 4, 6));
  const branch = { rank: 4, down: toBF16(down), up: toBF16(up) };
  const lora = { branches: new Map([['layer', branch]]), deltas: new Map() };
  const widened = { rank: 4, down: fromBF16(branch.down), up: fromBF16(branch.up) };
  const wide = { branches: new Map([['layer', widened]]), deltas: new Map() };
  for (const options of [
    { precision: 'f32' },
    { precision: 'int8', plainFactors: true },
  ] as const) {
    const { y, spec } = await apply('layer', { ...options, lora });
    expect(spec.lora).toBe('f32');
    expect(y).toEqual((await apply('layer', { ...options, lora: wide })).y);
  }
  const scope = new Scope(backend);
  const loader = new LayerLoader(freshMemory(scope), checkpoint, { precision: 'int8', lora });
  const { spec, tensors } = await loader.linear('layer');
  expect(spec.lora).toBe('bf16');
  expect([tensors.down?.bytes, tensors.up?.bytes]).toEqual([2 * 4 * inner, 2 * 4 * out]);
  scope.dispose();
});

test('outputs can be reordered, weights, biases and LoRA alike', async () => {
  const order = [4, 2, 0, 1, 3];
  const lora = {
    branches: new Map([
      ['layer', { rank: 1, down: x.slice(0, inner), up: Float32Array.from(values(out, 8)) }],
    ]),
    deltas: new Map<string, Float32Array>(),
  };
  const options = { precision: 'f32', lora } as const;
  const straight = await apply('layer', options);
  const reordered = await apply('layer', options, { rows: order });
  const wanted = Float32Array.from(
    { length: rows * out },
    (_, at) => straight.y[Math.floor(at / out) * out + (order[at % out] ?? 0)] ?? 0,
  );
  expect(relativeRms(reordered.y, wanted)).toBeLessThan(1e-6);
});

test('bytes are reported as they are read, and an abort stops reading', async () => {
  const scope = new Scope(backend);
  let bytes = 0;
  const onBytes = (more: number) => {
    bytes += more;
  };
  await new LayerLoader(freshMemory(scope), checkpoint, { precision: 'int8', onBytes }).linear(
    'layer',
  );
  expect(bytes).toBe((out * inner + out) * 4);
  const signal = AbortSignal.abort(new Error('enough'));
  const stopped = new LayerLoader(freshMemory(scope), checkpoint, { precision: 'f32', signal });
  await expect(stopped.linear('layer')).rejects.toThrow('enough');
  scope.dispose();
  expect(backend.counters().liveBytes).toBe(0);
});

test('a tensor that a checkpoint does not give is refused by its name', async () => {
  const scope = new Scope(backend);
  const forgetful = { ...checkpoint, readStored: async () => new Map() };
  const loader = new LayerLoader(freshMemory(scope), forgetful, { precision: 'f32' });
  await expect(loader.linear('layer')).rejects.toMatchObject({
    code: 'TENSOR_MISSING',
    message: expect.stringContaining('layer.weight'),
  });
  scope.dispose();
});

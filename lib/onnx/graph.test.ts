import * as ort from 'onnxruntime-web';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  add,
  clip,
  concat,
  conv2d,
  div,
  type Graph,
  GraphBuilder,
  gather,
  gelu,
  geluTanh,
  gemm,
  layerNormalization,
  matMul,
  matMulBlocks,
  mul,
  multiHeadAttention,
  relu,
  reshape,
  rmsNormalization,
  rotaryEmbedding,
  silu,
  slice,
  softmax,
  split,
  sub,
  tanh,
  transpose,
  unsqueeze,
} from '.';

/** Numbers that are different everywhere and easy to tell apart. */
const ramp = (count: number, step = 0.1) =>
  Float32Array.from({ length: count }, (_, i) => i * step);

/** Runs a graph of float32 inputs in onnxruntime itself and gives its outputs. */
async function run(
  graph: Graph,
  inputs: Record<
    string,
    [ort.Tensor.Type, ort.TypedTensor<'float32'>['data'] | Int32Array | Uint8Array, number[]]
  >,
) {
  const session = await ort.InferenceSession.create(graph.bytes, { executionProviders: ['wasm'] });
  const feeds = Object.fromEntries(
    Object.entries(inputs).map(([name, [type, data, dims]]) => [
      name,
      new ort.Tensor(type as 'float32', data as Float32Array, dims),
    ]),
  );
  const results = await session.run(feeds);
  await session.release();
  return Object.fromEntries(
    graph.outputs.map(({ name }) => {
      const tensor = results[name];
      if (!tensor) throw new Error(`no output ${name}`);
      return [name, { dims: tensor.dims, data: [...(tensor.data as Float32Array)] }];
    }),
  );
}

beforeAll(() => {
  ort.env.logLevel = 'error';
});

describe('bytes that onnxruntime accepts', () => {
  test('element-wise operators broadcast and keep symbolic sizes', async () => {
    const g = new GraphBuilder('elementwise');
    const x = g.input('x', 'float32', ['L', 3]);
    const row = g.input('row', 'float32', [3]);
    const y = div(mul(sub(add(x, row), row), g.scalar(4)), g.scalar(2));
    expect(y.dims).toEqual(['L', 3]);
    g.output('y', y);
    g.output('zero', relu(sub(y, y)));
    const { y: out, zero } = await run(g.build(), {
      x: ['float32', ramp(6, 1), [2, 3]],
      row: ['float32', ramp(3, 8), [3]],
    });
    expect(out).toEqual({ dims: [2, 3], data: [0, 2, 4, 6, 8, 10] });
    expect(zero?.data).toEqual([0, 0, 0, 0, 0, 0]);
  });

  test('activations are the functions they are named after', async () => {
    const g = new GraphBuilder('activations');
    const x = g.input('x', 'float32', [4]);
    g.output('silu', silu(x));
    g.output('geluTanh', geluTanh(x));
    g.output('gelu', gelu(x));
    g.output('tanh', tanh(x));
    g.output('softmax', softmax(x));
    g.output('clip', clip(x, -1, 0.5));
    const values = [-2, -0.5, 0.25, 3];
    const out = await run(g.build(), { x: ['float32', Float32Array.from(values), [4]] });
    expect(out.clip?.data).toEqual([-1, -0.5, 0.25, 0.5]);
    const sum = values.reduce((total, v) => total + Math.exp(v), 0);
    const tanhForm = (v: number) =>
      0.5 * v * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (v + 0.044715 * v ** 3)));
    // x·Φ(x), from a table of the normal distribution.
    const exact = [-0.0455003, -0.1542688, 0.1496766, 2.9959503];
    values.forEach((v, i) => {
      expect(out.silu?.data[i]).toBeCloseTo(v / (1 + Math.exp(-v)), 5);
      expect(out.geluTanh?.data[i]).toBeCloseTo(tanhForm(v), 5);
      expect(out.gelu?.data[i]).toBeCloseTo(exact[i] ?? 0, 6);
      expect(out.tanh?.data[i]).toBeCloseTo(Math.tanh(v), 5);
      expect(out.softmax?.data[i]).toBeCloseTo(Math.exp(v) / sum, 5);
    });
  });

  test('shapes: reshape, transpose, concat, split, slice, unsqueeze, gather', async () => {
    const g = new GraphBuilder('shapes');
    const x = g.input('x', 'float32', [2, 3]);
    const rows = g.input('rows', 'int32', ['N']);
    g.output('reshaped', reshape(x, ['M', 2]));
    g.output('turned', transpose(x, [1, 0]));
    g.output('joined', concat([x, x], 0));
    const [left, right] = split(x, 1, [1, 2]);
    if (!left || !right) throw new Error('split gave too few');
    g.output('left', left);
    g.output('right', right);
    g.output('middle', slice(x, 1, 1, 2));
    g.output('wide', unsqueeze(x, 1));
    g.output('gathered', gather(x, rows));
    const out = await run(g.build(), {
      x: ['float32', ramp(6, 1), [2, 3]],
      rows: ['int32', Int32Array.of(1, 0, 1), [3]],
    });
    expect(out.reshaped?.dims).toEqual([3, 2]);
    expect(out.turned?.data).toEqual([0, 3, 1, 4, 2, 5]);
    expect(out.joined?.dims).toEqual([4, 3]);
    expect(out.left?.data).toEqual([0, 3]);
    expect(out.right?.data).toEqual([1, 2, 4, 5]);
    expect(out.middle?.data).toEqual([1, 4]);
    expect(out.wide).toEqual({ dims: [2, 1, 3], data: [0, 1, 2, 3, 4, 5] });
    expect(out.gathered?.data).toEqual([3, 4, 5, 0, 1, 2, 3, 4, 5]);
  });

  test('matrix products: plain, transposed with bias, and in blocks of 8 and 4 bits', async () => {
    const g = new GraphBuilder('products');
    const x = g.input('x', 'float32', ['L', 32]);
    const w = g.input('w', 'float32', [2, 32]);
    const b = g.input('b', 'float32', [2]);
    const values = g.input('values', 'uint8', [2, 1, 32]);
    const scales = g.input('scales', 'float32', [2, 1]);
    g.output('gemm', gemm(x, w, b));
    g.output('matmul', matMul(x, transpose(w, [1, 0])));
    const nibbles = g.input('nibbles', 'uint8', [2, 1, 16]);
    g.output('blocks', matMulBlocks(x, values, scales, b, 8));
    g.output('halves', matMulBlocks(x, nibbles, scales, b, 4));
    const weight = Float32Array.from({ length: 64 }, (_, i) => (i % 7) - 3);
    const out = await run(g.build(), {
      x: ['float32', ramp(32, 1), [1, 32]],
      w: ['float32', weight, [2, 32]],
      b: ['float32', Float32Array.of(100, 200), [2]],
      values: ['uint8', Uint8Array.from(weight, (v) => v * 2 + 128), [2, 1, 32]],
      nibbles: [
        'uint8',
        Uint8Array.from(
          { length: 32 },
          (_, i) => (weight[2 * i] ?? 0) + 8 + 16 * ((weight[2 * i + 1] ?? 0) + 8),
        ),
        [2, 1, 16],
      ],
      scales: ['float32', Float32Array.of(0.5, 0.5), [2, 1]],
    });
    const expected = [0, 1].map((n) =>
      weight.slice(n * 32, n * 32 + 32).reduce((sum, v, i) => sum + v * i, 0),
    );
    expect(out.matmul?.data).toEqual(expected);
    expect(out.gemm?.data).toEqual(expected.map((v, n) => v + 100 * (n + 1)));
    out.blocks?.data.forEach((v, n) => {
      expect(v).toBeCloseTo((expected[n] as number) + 100 * (n + 1), 3);
    });
    out.halves?.data.forEach((v, n) => {
      expect(v).toBeCloseTo((expected[n] as number) / 2 + 100 * (n + 1), 3);
    });
  });

  test('norms, rotary embedding, attention and convolution build and run', async () => {
    const g = new GraphBuilder('model-operators');
    const x = g.input('x', 'float32', [1, 'L', 8]);
    const ones = g.input('ones', 'float32', [8]);
    const cos = g.input('cos', 'float32', [1, 'L', 2]);
    const sin = g.input('sin', 'float32', [1, 'L', 2]);
    const image = g.input('image', 'float32', [1, 1, 'H', 'W']);
    const kernel = g.input('kernel', 'float32', [1, 1, 3, 3]);
    g.output('layer', layerNormalization(x, ones, null, 1e-6));
    g.output('rms', rmsNormalization(x, ones, 1e-6));
    g.output('rotated', rotaryEmbedding(x, cos, sin, 2));
    g.output('attended', multiHeadAttention(x, x, x, { heads: 2, scale: 1 }));
    const convolved = conv2d(image, kernel, null, 'nchw', { pads: [1, 1, 1, 1] });
    expect(convolved.dims).toEqual([1, 1, 'H', 'W']);
    g.output('convolved', convolved);
    const out = await run(g.build(), {
      x: ['float32', Float32Array.of(1, 2, 3, 4, 5, 6, 7, 8), [1, 1, 8]],
      ones: ['float32', new Float32Array(8).fill(1), [8]],
      cos: ['float32', Float32Array.of(0, 1), [1, 1, 2]],
      sin: ['float32', Float32Array.of(1, 0), [1, 1, 2]],
      image: ['float32', ramp(6, 1), [1, 1, 2, 3]],
      kernel: ['float32', new Float32Array(9).fill(1), [1, 1, 3, 3]],
    });
    const mean = 4.5;
    const deviation = Math.sqrt(5.25);
    expect(out.layer?.data[0]).toBeCloseTo((1 - mean) / deviation, 4);
    expect(out.rms?.data[0]).toBeCloseTo(1 / Math.sqrt(25.5), 4);
    // Pair (1, 2) is turned by 90°, pair (3, 4) not at all.
    expect(out.rotated?.data.slice(0, 4)).toEqual([-2, 1, 3, 4]);
    // One key: attention returns the value.
    expect(out.attended?.data).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(out.convolved?.data).toEqual([8, 15, 12, 8, 15, 12]);
  });

  test('an output may be an input, or be named twice', async () => {
    const g = new GraphBuilder('names');
    const x = g.input('x', 'float32', [2]);
    const y = add(x, x);
    g.output('same', x);
    g.output('first', y);
    g.output('second', y);
    const out = await run(g.build(), { x: ['float32', Float32Array.of(1, 2), [2]] });
    expect([out.same?.data, out.first?.data, out.second?.data]).toEqual([
      [1, 2],
      [2, 4],
      [2, 4],
    ]);
  });
});

test('equal graphs have equal keys, different ones have not', () => {
  const build = (factor: number) => {
    const g = new GraphBuilder('scaled');
    g.output('y', mul(g.input('x', 'float32', ['L']), g.scalar(factor)));
    return g.build().key;
  };
  expect(build(2)).toBe(build(2));
  expect(build(2)).not.toBe(build(3));
});

describe('a wrong graph is a TypeError while it is built', () => {
  const g = new GraphBuilder('wrong');
  const x = g.input('x', 'float32', ['L', 8]);
  const y = g.input('y', 'float32', ['L', 4]);
  const half = g.input('half', 'float16', ['L', 8]);
  const bytes = g.input('bytes', 'uint8', [4, 1, 16]);
  const scales = g.input('scales', 'float32', [4, 1]);
  const x3 = g.input('x3', 'float32', [1, 'L', 8]);
  const other = new GraphBuilder('other').input('z', 'float32', ['L', 8]);

  test.each([
    ['shapes that do not broadcast', () => add(x, y), 'Add: dimension 1 differ: 8 and 4'],
    ['two element types', () => add(x, half as never), 'Add: half: float16[L, 8] must be float32'],
    ['another graph', () => add(x, other), 'belongs to another graph'],
    ['inner dimensions', () => gemm(x, g.input('w1', 'float32', [2, 4]), null), 'inner dimensions'],
    ['a rank', () => gemm(x3, g.input('w2', 'float32', [2, 8]), null), 'must have rank 2'],
    ['a block size', () => matMulBlocks(x, bytes, scales, null, 8), 'must be [N, K/32, 32]'],
    [
      'attention without batch',
      () => multiHeadAttention(x, x, x, { heads: 2, scale: 1 }),
      'rank 3',
    ],
    [
      'heads that do not divide',
      () => multiHeadAttention(x3, x3, x3, { heads: 3, scale: 1 }),
      '8 channels do not split into 3 heads',
    ],
    ['a permutation', () => transpose(x, [0, 0]), 'no permutation'],
    ['an axis', () => concat([x, x], 2), 'axis 2 is outside'],
    ['parts that do not add up', () => split(x, 1, [3, 4]), 'is not 3 + 4'],
    ['a slice outside', () => slice(x, 1, 4, 9), '[4, 9) is outside axis 1'],
    ['two unknown sizes', () => reshape(x, ['A', 'B']), 'more than one unknown size'],
    ['elements that do not fit', () => reshape(bytes, [3]), 'does not fit'],
    ['nothing to join', () => concat([], 0), 'nothing to join'],
    [
      'a constant of another size',
      () => g.constant('float32', [2], new Float32Array(3)),
      '3 elements',
    ],
    ['a name twice', () => g.input('x', 'float32', [1]), 'the name "x" is taken'],
    ['a size below one', () => g.input('q', 'float32', [0]), '0 is not a size'],
    ['no output', () => new GraphBuilder('empty').build(), 'it has no output'],
  ])('%s', (_, build, message) => {
    expect(build).toThrow(
      expect.objectContaining({ name: 'TypeError', message: expect.stringContaining(message) }),
    );
  });
});

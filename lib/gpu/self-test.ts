import { at, type KernelCheck, KinoraError } from '../contract';
import {
  conv2d,
  GraphBuilder,
  gemm,
  layerNormalization,
  matMulBlocks,
  multiHeadAttention,
  rmsNormalization,
  rotaryEmbedding,
  type Value,
} from '../onnx';
import { type Backend, elementCount, Scope } from './backend';
import * as reference from './reference';

/** ‖a − b‖ / ‖b‖; NaN where anything is not a number, which passes no tolerance. */
export function relativeRms(actual: ArrayLike<number>, expected: ArrayLike<number>): number {
  if (actual.length !== expected.length) return Number.NaN;
  let difference = 0;
  let norm = 0;
  for (let i = 0; i < expected.length; i++) {
    const e = expected[i] ?? Number.NaN;
    difference += ((actual[i] ?? Number.NaN) - e) ** 2;
    norm += e * e;
  }
  return Math.sqrt(difference / norm);
}

/** More than float32 sums in another order differ. */
const tolerance = 1e-4;

type Tensors = Readonly<Record<string, Float32Array | Uint8Array>>;
type Shapes = Readonly<Record<string, readonly number[]>>;

/** A case's graph inputs by name. */
interface Inputs {
  float(name: string): Value<'float32'>;
  bytes(name: string): Value<'uint8'>;
}

interface Case {
  readonly kernel: string;
  readonly inputs: Shapes;
  readonly bytes?: readonly string[];
  readonly output: readonly number[];
  build(of: Inputs): Value<'float32'>;
  expected(tensors: Tensors): Float64Array;
}

// Sizes are small and odd, since kernels fail at the incomplete tiles of an edge.
function cases(layout: 'nhwc' | 'nchw'): Case[] {
  const f = (tensors: Tensors, name: string) => tensors[name] as Float32Array;
  const attention = (
    [rows, keys]: readonly [number, number],
    heads: number,
    size: number,
    bias: 'none' | 'shared' | 'per head',
  ): Case => {
    // The text encoder does not scale its logits, and has a bias of its own for each head.
    const scale = bias === 'per head' ? 1 : 1 / Math.sqrt(size);
    const biasHeads = bias === 'per head' ? heads : 1;
    return {
      kernel: `attention ${rows}×${keys}, head ${size}${bias === 'none' ? '' : `, bias ${bias}`}`,
      inputs: {
        q: [1, rows, heads * size],
        k: [1, keys, heads * size],
        v: [1, keys, heads * size],
        ...(bias !== 'none' && { bias: [1, biasHeads, rows, keys] }),
      },
      output: [1, rows, heads * size],
      build: (of) =>
        multiHeadAttention(of.float('q'), of.float('k'), of.float('v'), {
          heads,
          scale,
          ...(bias !== 'none' && { bias: of.float('bias') }),
        }),
      expected: (t) => {
        // The reference divides by the root of the size itself.
        const scaled = f(t, 'q').map((value) => value * scale * Math.sqrt(size));
        const logits = bias === 'none' ? new Float32Array(rows * keys) : f(t, 'bias');
        return reference.attention(scaled, f(t, 'k'), f(t, 'v'), logits, {
          rows,
          keys,
          heads,
          size,
        });
      },
    };
  };
  const quantised = (bits: 8 | 4): Case => ({
    kernel: `quantised linear, ${bits} bits`,
    inputs: { x: [37, 96], w: [50, 3, 4 * bits], scales: [50, 3], b: [50] },
    bytes: ['w'],
    output: [37, 50],
    build: (of) =>
      matMulBlocks(of.float('x'), of.bytes('w'), of.float('scales'), of.float('b'), bits),
    expected: (t) =>
      reference.linear(
        f(t, 'x'),
        reference.dequantise(t.w as Uint8Array, f(t, 'scales'), bits),
        f(t, 'b'),
        { rows: 37, inner: 96, columns: 50 },
      ),
  });
  return [
    attention([67, 131], 3, 32, 'shared'),
    attention([33, 517], 2, 128, 'none'),
    attention([5, 23], 2, 64, 'shared'),
    attention([70, 70], 3, 64, 'per head'),
    quantised(8),
    quantised(4),
    {
      kernel: 'linear',
      inputs: { x: [37, 75], w: [50, 75], b: [50] },
      output: [37, 50],
      build: (of) => gemm(of.float('x'), of.float('w'), of.float('b')),
      expected: (t) =>
        reference.linear(f(t, 'x'), f(t, 'w'), f(t, 'b'), { rows: 37, inner: 75, columns: 50 }),
    },
    ...[5, 8].map(
      (channels): Case => ({
        kernel: `convolution, ${channels} channels`,
        inputs: {
          x: layout === 'nhwc' ? [2, 11, 7, channels] : [2, channels, 11, 7],
          w: [12, channels, 3, 3],
          b: [12],
        },
        output: layout === 'nhwc' ? [2, 11, 7, 12] : [2, 12, 11, 7],
        build: (of) =>
          conv2d(of.float('x'), of.float('w'), of.float('b'), layout, { pads: [1, 1, 1, 1] }),
        expected: (t) =>
          reference.convolution(f(t, 'x'), f(t, 'w'), f(t, 'b'), {
            layout,
            images: 2,
            height: 11,
            width: 7,
            channels,
            filters: 12,
          }),
      }),
    ),
    {
      kernel: 'layer norm',
      inputs: { x: [13, 70], scale: [70], bias: [70] },
      output: [13, 70],
      build: (of) => layerNormalization(of.float('x'), of.float('scale'), of.float('bias'), 1e-6),
      expected: (t) => reference.layerNorm(f(t, 'x'), f(t, 'scale'), f(t, 'bias'), 1e-6),
    },
    {
      kernel: 'RMS norm',
      inputs: { x: [13, 70], scale: [70] },
      output: [13, 70],
      build: (of) => rmsNormalization(of.float('x'), of.float('scale'), 1e-6),
      expected: (t) => reference.rmsNorm(f(t, 'x'), f(t, 'scale'), 1e-6),
    },
    {
      kernel: 'rotary embedding',
      inputs: { x: [1, 19, 48], cos: [1, 19, 8], sin: [1, 19, 8] },
      output: [1, 19, 48],
      build: (of) => rotaryEmbedding(of.float('x'), of.float('cos'), of.float('sin'), 3),
      expected: (t) =>
        reference.rotary(f(t, 'x'), f(t, 'cos'), f(t, 'sin'), { heads: 3, pairs: 8 }),
    },
  ];
}

/**
 * Runs each kernel that the model needs at small odd sizes and compares it with plain loops in
 * double precision. Takes well under a second on a GPU.
 *
 * @returns one line per kernel; `usable` says whether its error is within the tolerance
 */
export async function selfTest(backend: Backend): Promise<KernelCheck[]> {
  const scope = new Scope(backend);
  try {
    const tests = cases(backend.convLayout);
    const inputs: Tensors[] = [];
    const staged: Promise<Float32Array>[] = [];
    for (const test of tests) {
      const { tensors, y } = await submit(backend, scope, test);
      inputs.push(tensors);
      staged.push(backend.stage(y));
    }
    const results = await backend.collect(staged);
    return tests.map(({ kernel, expected }, i): KernelCheck => {
      const relativeError = relativeRms(at(results, i), expected(at(inputs, i)));
      return { kernel, relativeError, tolerance, usable: relativeError <= tolerance };
    });
  } finally {
    scope.dispose();
  }
}

/**
 * Rejects a device whose kernels compute wrong numbers.
 *
 * @throws KinoraError `GPU_UNRELIABLE` naming the kernels whose numbers are wrong
 */
export function requireUsable(checks: readonly KernelCheck[]): void {
  const broken = checks.filter((check) => !check.usable).map(({ kernel }) => kernel);
  if (broken.length === 0) return;
  throw new KinoraError(
    'GPU_UNRELIABLE',
    `The GPU gives wrong numbers in the self-test: ${broken.join(', ')}.`,
  );
}

/** Runs a case on tensors of the scope. */
async function submit(backend: Backend, scope: Scope, test: Case) {
  const g = new GraphBuilder(`self-test ${test.kernel}`);
  const values = new Map<string, Value>();
  const tensors: Record<string, Float32Array | Uint8Array> = {};
  const bound: Record<string, ReturnType<Scope['tensor']>> = {};
  Object.entries(test.inputs).forEach(([name, dims], index) => {
    const dtype = test.bytes?.includes(name) ? 'uint8' : 'float32';
    const data = reference.numbers(elementCount(dims), index);
    const content =
      dtype === 'uint8' ? Uint8Array.from(data, (value) => 128 + Math.round(value * 127)) : data;
    values.set(name, g.input(name, dtype, dims));
    tensors[name] = content;
    bound[name] = scope.tensor(dtype, dims, 'activations', content as Float32Array);
  });
  const of: Inputs = {
    float: (name) => values.get(name) as Value<'float32'>,
    bytes: (name) => values.get(name) as Value<'uint8'>,
  };
  g.output('y', test.build(of));
  const y = scope.float32(test.output, 'activations');
  await backend.run(g.build(), bound, { y });
  return { tensors, y };
}

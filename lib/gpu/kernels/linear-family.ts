import type { Scope } from '../backend';
import * as reference from '../reference';
import { numbers } from '../reference';
import type { ReadableTensor } from '../tensor';
import {
  type CheckedProblem,
  checkEach,
  extremeRows,
  largestHalf,
  readBytes,
  roundedTiles,
  stored,
  tolerances,
  upload,
} from './check';
import type { LinearShape, LinearVariant } from './choice';
import { type Dispatch, wholeRows } from './compute';
import { halfBits, halves, type KernelFamily } from './family';
import { linearDispatch, linearKernel, linearVariants, productShape } from './linear';
import {
  type FastLinearShape,
  fastLinearDispatch,
  fastLinearKernel,
  fastLinearVariants,
} from './linear-dp4a';
import { matrixLinearVariants, matrixResults } from './linear-matrix';
import { quantiseDispatch, quantiseKernel } from './quantise';
import { suited } from './registers';

/** Shapes of linear kernels that the tuner runs: two odd ones to be checked, and that of the model. */
export function linearShape(use: 'small' | 'clamped' | 'timed'): LinearShape {
  const [k, n] = use === 'timed' ? [3072, 3072] : use === 'small' ? [96, 202] : [288, 76];
  return {
    k,
    n,
    weight: 'q8',
    input: 'f16',
    output: use === 'small' ? 'f32' : 'f16',
    bias: true,
    rank: 0,
    epilogue: 'none',
  };
}

/** The same of fast linear kernels; the clamped one has a weight in 4 bits. */
export function fastLinearShape(use: 'small' | 'clamped' | 'timed'): FastLinearShape {
  return { ...linearShape(use), weight: use === 'clamped' ? 'q4' : 'q8' };
}

/** Each epilogue and both kinds of blocks, as a block of the transformer has them, with a LoRA's branch. */
const linearCases: readonly LinearShape[] = [
  { ...linearShape('small'), epilogue: 'added' },
  { ...linearShape('clamped'), epilogue: 'gelu', counted: true },
  { ...linearShape('small'), n: 76, weight: 'q4', rank: 12, up: 'bf16', epilogue: 'gated' },
];

/** A gated sum in place with a LoRA's branch, and GELU to f16 with its overflows; weights in 8 and in 4 bits. */
const fastCases: readonly FastLinearShape[] = [
  { ...fastLinearShape('small'), rank: 12, epilogue: 'gated' },
  { ...fastLinearShape('clamped'), epilogue: 'gelu', counted: true },
];

/** Rounding x to 8 bits may cost so much; what follows from the integers is computed as exactly as elsewhere. */
const roundingOfX = 2e-2;

/** Rows of x: in the cases, and of a chunk of tokens. */
const rows = 197;
export const timedTokens = 8192;

const resultsOf = ({ matrix, threadRows, threadColumns }: LinearVariant) =>
  matrix ? matrixResults(matrix) : threadRows * threadColumns;

export const linear: KernelFamily<LinearVariant> = {
  name: 'linear',
  variants: (device) => suited(device, 'linear', linearVariants(device), resultsOf),
  results: resultsOf,
  kernel: (variant, work) => linearKernel(variant, linearShape(work)),
  checked: (variant) =>
    linearCases
      .flatMap((shape) => (shape.rank > 0 ? [downShape(shape), shape] : [shape]))
      .map((shape) => linearKernel(variant, shape)),
  check: (device, variant) =>
    checkEach(device, linearCases, (scope, shape) => {
      const { k, rank, up = 'f32', output } = shape;
      const x = stored(extremeRows(rows, k), 'f16');
      const down = stored(numbers(rank * k, 13), up);
      const { operands, problemOf } = randomProblem(scope, shape);
      const input = { rows, x: wholeRows(upload(scope, x, 'f16')) };
      const jobs = [linearDispatch(variant, shape, { ...operands, ...input })];
      if (operands.t) {
        const branch = { ...input, weight: upload(scope, down, up), y: operands.t };
        jobs.unshift(linearDispatch(variant, downShape(shape), branch));
      }
      const inner = { rows, inner: k, columns: rank };
      const t = reference.linear(x, down, new Float32Array(rank), inner);
      const rounded = variant.shared === 'f16' || variant.matrix;
      return problemOf(jobs, t, [[x, rounded ? roundedTiles : tolerances[output]]]);
    }),
  flops: flopsOf(linearShape('timed')),
  work: async (scope) => {
    const shape = linearShape('timed');
    const x = wholeRows(halves(scope, [timedTokens, shape.k]));
    const { result, ...layer } = timedResult(scope, shape);
    return {
      result,
      jobs: async (variant, share) => [
        linearDispatch(variant, shape, { ...layer, x, rows: Math.ceil(timedTokens * share) }),
      ],
    };
  },
};

/** Linears of the mode `matrix`; what matrices do not compute, their plain part does. */
export const matrixLinear: KernelFamily<LinearVariant> = {
  ...linear,
  variants: (device) => matrixLinearVariants(device, linearVariants(device)),
};

/** The rounding of x is not timed: several layers share it, and it is the same for all variants. */
export const fastLinear: KernelFamily<LinearVariant> = {
  name: 'fastLinear',
  variants: (device) => suited(device, 'fastLinear', fastLinearVariants(device), resultsOf),
  results: resultsOf,
  kernel: (variant, work) => fastLinearKernel(variant, fastLinearShape(work)),
  checked: (variant) =>
    fastCases.flatMap((shape) => [
      quantiseKernel(shape.k, 'f16'),
      fastLinearKernel(variant, shape),
    ]),
  preparing: [quantiseKernel(fastLinearShape('small').k, 'f16')],
  check: (device, variant) =>
    checkEach(device, fastCases, async (scope, shape) => {
      const { k, rank, output } = shape;
      const x = stored(extremeRows(rows, k), 'f16');
      const { blocks, dispatch, input } = quantised(scope, k, rows);
      await device.compute.dispatch([dispatch(wholeRows(upload(scope, x, 'f16')))]);
      const levels = new Int8Array(await readBytes(device, scope, input.x.operand.tensor));
      const scales = await device.backend.read(blocks);
      const integers = Float64Array.from(levels, (level, i) => level * (scales[i >> 5] ?? 0));
      const { operands, problemOf } = randomProblem(scope, shape);
      // The first product of the branch is that of an exact kernel.
      const t = numbers(rows * rank, 13);
      if (operands.t) device.backend.write(operands.t.operand.tensor, t);
      return problemOf([fastLinearDispatch(variant, shape, { rows, ...operands, ...input })], t, [
        [integers, tolerances[output]],
        [x, roundingOfX],
      ]);
    }),
  flops: flopsOf(fastLinearShape('timed')),
  work: async (scope, compute) => {
    const shape = fastLinearShape('timed');
    const { dispatch, input } = quantised(scope, shape.k, timedTokens);
    const { result, ...layer } = timedResult(scope, shape);
    await compute.dispatch([dispatch(wholeRows(halves(scope, [timedTokens, shape.k])))]);
    return {
      result,
      jobs: async (variant, share) => [
        fastLinearDispatch(variant, shape, {
          ...layer,
          ...input,
          rows: Math.ceil(timedTokens * share),
        }),
      ],
    };
  },
};

function flopsOf({ n, k }: LinearShape): number {
  return 2 * timedTokens * n * k;
}

/** `x·downᵀ` of a LoRA. */
function downShape({ k, input, rank, up = 'f32' }: LinearShape): LinearShape {
  return productShape({ k, n: rank, input, weight: up });
}

/** Memory of rows in blocks of bytes, and what rounds f16 rows to them. */
function quantised(scope: Scope, k: number, count: number) {
  const blocks = scope.float32([count, k / 32], 'activations');
  const x = wholeRows(scope.tensor('int32', [count, k / 4], 'activations'));
  const input = { x, xScales: wholeRows(blocks) };
  const dispatch = (source: typeof x) =>
    quantiseDispatch(k, 'f16', { rows: count, source, ...input });
  return { blocks, input, dispatch };
}

/** Operands of a linear with random content beside x, and what it makes of an x. */
function randomProblem(scope: Scope, shape: LinearShape) {
  const { k, n, weight, rank, up: type = 'f32', output, epilogue, counted } = shape;
  const bits = weight === 'q4' ? 4 : 8;
  const values = Uint8Array.from(numbers((n * k * bits) / 8, 2), (value) => 128 + 127.9 * value);
  const scales = numbers((n * k) / 32, 3).map((value) => (1.5 + value) / 2 ** bits);
  const [bias, before, gate] = [numbers(n, 4), numbers(rows * n, 11), numbers(2 * n, 12)];
  const up = stored(numbers(n * rank, 14), type);
  const y =
    output === 'f32'
      ? scope.float32([rows, n], 'activations', before)
      : scope.tensor('float16', [rows, n], 'activations');
  const overflows = counted ? scope.tensor('int32', [1], 'activations') : null;
  const operands = {
    values: scope.tensor('uint8', [values.length], 'activations', values),
    scales: upload(scope, scales, 'f32'),
    bias: upload(scope, bias, 'f32'),
    y: wholeRows(y),
    ...(rank > 0 && {
      t: wholeRows(scope.float32([rows, rank], 'activations')),
      up: upload(scope, up, type),
    }),
    // The second row of two.
    ...(epilogue === 'gated' && {
      gate: { ...wholeRows(upload(scope, gate, 'f32')), firstRow: 1 },
    }),
    ...(overflows && { overflows }),
  };
  const finished = (value: number, i: number) => {
    if (epilogue === 'gelu') return gelu(value);
    if (epilogue === 'none') return value;
    return (before[i] ?? 0) + value * (epilogue === 'gated' ? (gate[n + (i % n)] ?? 0) : 1);
  };
  /**
   * @param t what comes of the branch's first product, [rows, rank]
   * @param of what x may be taken for, with the tolerance of what follows from it
   */
  const problemOf = (
    jobs: readonly Dispatch[],
    t: ArrayLike<number>,
    of: readonly (readonly [x: ArrayLike<number>, tolerance: number])[],
  ): CheckedProblem => {
    const weights = reference.dequantise(values, scales, bits); // [n, k]
    const sizes = { rows, inner: rank, columns: n };
    const added = reference.linear(t, up, new Float32Array(n), sizes);
    const results = of.map(([x]) =>
      reference
        .linear(x, weights, bias, { rows, inner: k, columns: n })
        .map((sum, i) => finished(sum + (added[i] ?? 0), i)),
    );
    // Results so close to the largest f16 may lie on either side.
    const beyond = (factor: number) =>
      groupsBeyond(results[0] ?? new Float64Array(), factor * largestHalf);
    return {
      jobs,
      y: y as ReadableTensor,
      width: n,
      expected: results.map((values, i) => ({
        values: output === 'f32' ? values : values.map(clamped),
        tolerance: of[i]?.[1] ?? 0,
      })),
      ...(overflows && {
        counted: {
          tensor: overflows,
          least: beyond(1 + roundedTiles),
          most: beyond(1 - roundedTiles),
        },
      }),
    };
  };
  return { operands, problemOf };
}

const clamped = (value: number) => Math.max(-largestHalf, Math.min(largestHalf, value));

/** The tanh form. */
function gelu(v: number): number {
  return 0.5 * v * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (v + 0.044715 * v ** 3)));
}

/** Groups of four results, one of which is larger. */
function groupsBeyond(values: Float64Array, largest: number): number {
  let groups = 0;
  for (let i = 0; i < values.length; i += 4) {
    if (values.subarray(i, i + 4).some((value) => Math.abs(value) > largest)) groups++;
  }
  return groups;
}

/** What a linear kernel is timed with beside its rows. */
function timedResult(scope: Scope, shape: LinearShape) {
  const result = scope.tensor('float16', [timedTokens, shape.n], 'activations');
  return { result, y: wholeRows(result), ...timedLayer(scope, shape) };
}

/** The weight of the timed layer in blocks of 8 bits, and a bias of zeros. */
export function timedLayer(scope: Scope, { n, k }: Pick<LinearShape, 'n' | 'k'>) {
  const words = new Uint8Array(halfBits(n * k).buffer, 0, n * k);
  const scales = new Float32Array((n * k) / 32).fill(1e-3);
  return {
    values: scope.tensor('uint8', [n, k / 32, 32], 'weights', words),
    scales: scope.float32([n, k / 32], 'weights', scales),
    bias: scope.float32([n], 'weights'),
  };
}

import type { Scope } from '../backend';
import * as reference from '../reference';
import { numbers } from '../reference';
import type { DeviceTensor, ReadableTensor } from '../tensor';
import {
  type AttentionRun,
  attentionDispatch,
  attentionKernel,
  attentionResults,
  attentionVariants,
  type HeadView,
  widest,
} from './attention';
import {
  fastAttentionDispatch,
  fastAttentionKernel,
  fastAttentionVariants,
} from './attention-dp4a';
import {
  matrixAttentionDispatch,
  matrixAttentionKernel,
  matrixAttentionResults,
  matrixAttentionVariants,
} from './attention-matrix';
import {
  packedValues,
  packedWidth,
  quantiseKernels,
  quantiseRows,
  quantiseValues,
  quantiseValuesKernels,
} from './attention-quantise';
import {
  type CheckDevice,
  checkEach,
  type Expected,
  readBytes,
  roundedTiles,
  stored,
  tolerances,
  upload,
} from './check';
import type { AttentionShape, AttentionVariant, MatrixAttentionVariant } from './choice';
import { type Dispatch, wholeRows } from './compute';
import { halves, type KernelFamily, type Variant } from './family';
import type { Kernel } from './kernel';
import { suited } from './registers';

/** The shape of self-attention, and with a weight of the last key that of cross-attention. */
export const selfAttention = widest;
export const crossAttention: AttentionShape = { ...widest, bias: 'last' };

/** Sizes of a problem, with heads that lie between each other. */
interface AttentionSizes {
  readonly heads: number;
  readonly size: number;
  readonly rows: number;
  readonly keys: number;
}

const small: AttentionSizes = { heads: 2, size: 128, rows: 77, keys: 333 };
/** A part of the queries of a clip, and all of its keys. */
export const timedAttention: AttentionSizes = { heads: 2, size: 128, rows: 16_384, keys: 27_280 };
/** Of the queries: with logits of a deviation of 2 a query attends to some keys, as in a model. */
export const queryScale = 6;

const flops =
  4 * timedAttention.heads * timedAttention.rows * timedAttention.keys * timedAttention.size;

/** Numbers of a check. */
interface AttentionCase {
  readonly shape: AttentionShape;
  readonly scale: number;
  /** Of the queries. */
  readonly spread: number;
  readonly tolerance: number;
}

function casesOf(tolerance: number, shapes: readonly AttentionShape[]): AttentionCase[] {
  const scale = 1 / Math.sqrt(small.size);
  const usual = { shape: selfAttention, scale, spread: 3, tolerance };
  return [
    ...shapes.map((shape) => ({ ...usual, shape })),
    // All logits are equal: the result is the mean of v.
    { ...usual, spread: 0, tolerance: 1e-3 },
    // Logits of about ±10⁴, which f32 rounds by 10⁻³: mostly one key takes everything.
    { ...usual, scale: 300, tolerance: 1e-2 },
  ];
}

const lastBias = 2.5;

/** Content of q, k and v of a case, memory for the result, and the result in double precision. */
function randomProblem(
  scope: Scope,
  { shape, scale, spread }: AttentionCase,
  index: number,
  mean = 0,
) {
  const { heads, size, rows, keys } = small;
  const width = heads * size;
  const random = (count: number, salt: number, change: (value: number) => number) =>
    stored(numbers(count * width, salt).map(change), 'f16');
  const q = random(rows, 5, (value) => value * spread);
  const k = random(keys, 6, (value) => value + mean);
  const v = random(keys, 7 + index, (value) => value);
  const y = scope.tensor('float16', [rows, width], 'activations') as ReadableTensor;
  const last = shape.bias === 'last';
  /** @param of what q, k and v may be taken for */
  const expected = (
    of: Readonly<Record<'q' | 'k' | 'v', ArrayLike<number>>> = { q, k, v },
    weightsOf?: (logits: Float64Array) => Float64Array,
  ): Float64Array => {
    const logits = new Float64Array(rows * keys);
    if (last) for (let row = 1; row <= rows; row++) logits[row * keys - 1] = lastBias;
    // The reference divides by the root of the size itself.
    const scaled = Float64Array.from(of.q, (value) => value * scale * Math.sqrt(size));
    return reference.attention(scaled, of.k, of.v, logits, small, weightsOf);
  };
  const out = interleaved(y, small);
  const call = { heads, rows, keys, scale, out, ...(last && { lastBias }) };
  const view = (values: Float32Array<ArrayBuffer>) =>
    interleaved(upload(scope, values, 'f16'), small);
  return { q, k, v, y, width, call, view, expected };
}

/** Operands of self-attention of a model's sizes. */
function attended(scope: Scope) {
  const { heads, size, rows, keys } = timedAttention;
  const view = (count: number, scale?: number) =>
    interleaved(halves(scope, [count, heads * size], scale), timedAttention);
  const result = scope.tensor('float16', [rows, heads * size], 'activations');
  return {
    q: view(rows, queryScale),
    k: view(keys),
    v: view(keys),
    out: interleaved(result, timedAttention),
    result,
    heads,
    keys,
    scale: 1 / Math.sqrt(size),
  };
}

/** Heads that lie one behind the other in each row. */
export function interleaved(
  tensor: DeviceTensor,
  { heads, size }: Pick<AttentionSizes, 'heads' | 'size'>,
): HeadView {
  return { ...wholeRows(tensor), headStride: size, rowStride: heads * size };
}

/** A family whose kernels read q, k and v as they are. */
function plainFamily<V extends Variant>(
  family: Pick<KernelFamily<V>, 'name' | 'variants' | 'results'>,
  kernel: (variant: V, shape: AttentionShape) => Kernel,
  dispatch: (variant: V, shape: AttentionShape, run: AttentionRun) => Dispatch,
  { tolerance, shapes }: { tolerance: number; shapes: readonly AttentionShape[] },
): KernelFamily<V> {
  return {
    ...family,
    kernel: (variant) => kernel(variant, selfAttention),
    checked: (variant) => shapes.map((shape) => kernel(variant, shape)),
    check: (device, variant) =>
      checkEach(device, casesOf(tolerance, shapes), (scope, one, index) => {
        const { q, k, v, y, width, call, view, expected } = randomProblem(scope, one, index);
        return {
          jobs: [dispatch(variant, one.shape, { ...call, q: view(q), k: view(k), v: view(v) })],
          y,
          width,
          expected: [{ values: expected(), tolerance: one.tolerance }],
        };
      }),
    flops,
    work: async (scope) => {
      const { result, ...operands } = attended(scope);
      return {
        result,
        jobs: async (variant, share) => {
          const rows = Math.ceil(timedAttention.rows * share);
          return [dispatch(variant, selfAttention, { ...operands, rows })];
        },
      };
    },
  };
}

export const attention = plainFamily<AttentionVariant>(
  {
    name: 'attention',
    variants: (device) => suited(device, 'attention', attentionVariants(device), attentionResults),
    results: attentionResults,
  },
  attentionKernel,
  attentionDispatch,
  { tolerance: tolerances.f16, shapes: [selfAttention, crossAttention] },
);

/** Weights are f16. */
export const matrixAttention = plainFamily<MatrixAttentionVariant>(
  {
    name: 'matrixAttention',
    variants: matrixAttentionVariants,
    results: matrixAttentionResults,
  },
  matrixAttentionKernel,
  matrixAttentionDispatch,
  { tolerance: roundedTiles, shapes: [selfAttention] },
);

/** Rounding q, k and v to 8 bits may cost so much. */
const attentionRounding = 3e-2;
/** A weight that lies between two integers may become either of them: so much of a row. */
const weightRounding = 5e-3;

const preparing = [
  ...quantiseKernels('f16', widest.headSize),
  ...quantiseValuesKernels('f16', widest.headSize),
];

/** The rounding of operands is not timed: it is the same for all variants. */
export const fastAttention: KernelFamily<AttentionVariant> = {
  name: 'fastAttention',
  variants: (device) =>
    suited(device, 'fastAttention', fastAttentionVariants(device), attentionResults),
  results: attentionResults,
  kernel: (variant) => fastAttentionKernel(variant, selfAttention),
  checked: (variant) => [fastAttentionKernel(variant, selfAttention), ...preparing],
  preparing,
  check: (device, variant) =>
    checkEach(device, casesOf(tolerances.f16, [selfAttention]), async (scope, one, index) => {
      const { shape, tolerance } = one;
      // The mean of the keys would take most of the 8 bits.
      const random = randomProblem(scope, one, index, 1);
      const { view } = random;
      const { bytes, jobs } = inBytes(scope, small);
      await device.compute.dispatch([
        ...jobs.queries(view(random.q), small.rows),
        ...jobs.rest(view(random.k), view(random.v)),
      ]);
      const integers = {
        q: await rowsOf(device, scope, bytes.q),
        k: await rowsOf(device, scope, bytes.k),
        v: await valuesOf(device, scope, bytes.v),
      };
      const rounded = (logits: Float64Array) => roundedWeights(logits, variant.keys);
      const expected: Expected[] = [
        {
          values: random.expected(integers, rounded),
          tolerance: Math.max(tolerance, weightRounding),
        },
      ];
      if (index === 0) expected.push({ values: random.expected(), tolerance: attentionRounding });
      const run = { ...random.call, ...bytes };
      const { y, width } = random;
      return { jobs: [fastAttentionDispatch(variant, shape, run)], y, width, expected };
    }),
  flops,
  work: async (scope, compute) => {
    const { result, q, k, v, ...operands } = attended(scope);
    const { bytes, jobs } = inBytes(scope, timedAttention);
    await compute.dispatch(jobs.rest(k, v));
    let rounded = 0;
    return {
      result,
      jobs: async (variant, share) => {
        const rows = Math.ceil(timedAttention.rows * share);
        // Where heads lie in 8 bits follows from the number of rows.
        if (rows !== rounded) await compute.dispatch(jobs.queries(q, rows));
        rounded = rows;
        return [fastAttentionDispatch(variant, selfAttention, { ...operands, ...bytes, rows })];
      },
    };
  },
};

/** Memory of q, k and v in 8 bits, and what rounds them. */
function inBytes(scope: Scope, { heads, size: headSize, rows, keys }: AttentionSizes) {
  const ofRows = (count: number) => ({
    values: scope.tensor('int32', [heads, count, packedWidth(headSize)], 'activations'),
    scales: scope.float32([heads, count], 'activations'),
  });
  const bytes = {
    q: ofRows(rows),
    k: ofRows(keys),
    v: {
      values: scope.tensor('int32', [heads, packedValues(keys, headSize)], 'activations'),
      ranges: scope.float32([heads, 2, headSize], 'activations'),
    },
  };
  const mean = scope.float32([heads, headSize], 'activations');
  const of = { storage: 'f16', headSize, heads } as const;
  const queries = (x: HeadView, rows: number) => quantiseRows({ ...of, x, rows, y: bytes.q });
  const rest = (k: HeadView, v: HeadView) => [
    ...quantiseRows({ ...of, rows: keys, x: k, y: bytes.k, mean }),
    ...quantiseValues({ ...of, rows: keys, x: v, y: bytes.v }),
  ];
  return { bytes, jobs: { queries, rest } };
}

type Bytes = ReturnType<typeof inBytes>['bytes'];

/** The rows that bytes and scales stand for: from [heads, rows, size] to [rows, heads·size]. */
async function rowsOf(device: CheckDevice, scope: Scope, of: Bytes['k']): Promise<Float64Array> {
  const { heads, size } = small;
  const levels = new Int8Array(await readBytes(device, scope, of.values));
  const scales = await device.backend.read(of.scales);
  const count = scales.length / heads;
  const rows = new Float64Array(levels.length);
  levels.forEach((level, i) => {
    const [row, channel] = [Math.floor(i / size), i % size];
    const place = ((row % count) * heads + Math.floor(row / count)) * size + channel;
    rows[place] = level * (scales[row] ?? 0);
  });
  return rows;
}

/** The values that bytes and ranges stand for, [keys, heads·size]. */
async function valuesOf(
  device: CheckDevice,
  scope: Scope,
  { values, ranges }: Bytes['v'],
): Promise<Float64Array> {
  const { heads, size, keys } = small;
  const bytes = new Uint8Array(await readBytes(device, scope, values));
  const range = await device.backend.read(ranges);
  return Float64Array.from({ length: keys * heads * size }, (_, i) => {
    const [key, head, channel] = [
      Math.floor(i / heads / size),
      Math.floor(i / size) % heads,
      i % size,
    ];
    const word = (head * Math.ceil(keys / 4) + (key >> 2)) * size + channel;
    const [least = 0, level = 0] = [0, 1].map((part) => range[(2 * head + part) * size + channel]);
    return least + level * (bytes[4 * word + (key & 3)] ?? 0);
  });
}

/** Weights that are rounded to 255 levels of the largest of each tile of keys. */
function roundedWeights(logits: Float64Array, tile: number): Float64Array {
  const most = reference.largest(logits);
  return logits.map((logit, key) => {
    const first = key - (key % tile);
    const mostOfTile = reference.largest(logits.subarray(first, first + tile));
    return Math.round(255 * Math.exp(logit - mostOfTile)) * Math.exp(mostOfTile - most);
  });
}

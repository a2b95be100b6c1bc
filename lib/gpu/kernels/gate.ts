import { type Backend, type DeviceTensor, type ReadableTensor, Scope } from '../backend';
import * as reference from '../reference';
import { relativeRms } from '../self-test';
import { type AttentionVariant, attentionDispatch } from './attention';
import type { Compute, Dispatch } from './compute';
import type { ConvolutionShape, ConvolutionVariant } from './convolution';
import { convolutionDispatches } from './convolution-run';
import { packedDims, packedRows, packJob } from './convolution-weights';
import { fromHalf, toHalf } from './half';
import type { Kernel, Storage } from './kernel';
import { type LinearShape, type LinearVariant, linearDispatch, linearKernel } from './linear';
import {
  attentionShape,
  convolutionShape,
  interleaved,
  linearShape,
  wholeRows,
} from './tuned-shapes';

/*
 * The gate of the tuner: does a variant compute right numbers on this device? Small odd sizes, since kernels fail
 * at the incomplete tiles of an edge, and hostile numbers; the expected result is computed in double precision
 * from the operands as they are stored.
 */

/** Largest relative error of a row, by how the result is stored. */
export const tolerances: Readonly<Record<Storage, number>> = { f32: 1e-5, f16: 5e-4 };
/** The same where the tiles are f16: they hold rounded weights. Rows of outliers show it most. */
const roundedTiles = 1e-3;
const largestHalf = 65504;

/** What a gate runs on. */
export interface GateDevice {
  readonly backend: Backend;
  readonly compute: Compute;
  /** Changes what is run: for tests, which plant errors. */
  readonly spoil?: (job: Dispatch) => Dispatch;
}

/** Why a variant must not be used; null where its numbers are right. */
export type Verdict = string | null;

/**
 * What is run of a linear variant: each epilogue and both kinds of blocks, as a block of the transformer has them,
 * and with `rank` a LoRA's branch, whose first product is a linear of its own.
 */
const linearCases: readonly LinearShape[] = [
  { ...linearShape('small'), epilogue: 'added' },
  { ...linearShape('clamped'), epilogue: 'gelu', counted: true },
  { ...linearShape('small'), n: 76, weight: 'q4', rank: 12, epilogue: 'gated' },
];

/** `x·downᵀ` of a LoRA. */
function downShape({ k, input, rank }: LinearShape): LinearShape {
  const plain = { weight: 'f32', output: 'f32', bias: false, rank: 0, epilogue: 'none' } as const;
  return { k, n: rank, input, ...plain };
}

/** The kernels that {@link checkLinear} runs. */
export function checkedLinears(variant: LinearVariant): Kernel[] {
  const shapes = linearCases.flatMap((shape) =>
    shape.rank > 0 ? [downShape(shape), shape] : [shape],
  );
  return shapes.map((shape) => linearKernel(variant, shape));
}

/** A variant of the linear kernels. */
export async function checkLinear(device: GateDevice, variant: LinearVariant): Promise<Verdict> {
  return checkEach(device, linearCases, (scope, shape) =>
    checkShape(device, scope, variant, shape),
  );
}

async function checkShape(
  device: GateDevice,
  scope: Scope,
  variant: LinearVariant,
  shape: LinearShape,
): Promise<Verdict> {
  const { k, n, rank, output, epilogue, counted } = shape;
  const rows = 197;
  const bits = shape.weight === 'q4' ? 4 : 8;
  const x = stored(hostileRows(rows, k), 'f16');
  const values = Uint8Array.from(numbers((n * k * bits) / 8, 2), (value) => 128 + 127.9 * value);
  const scales = numbers((n * k) / 32, 3).map((value) => (1.5 + value) / 2 ** bits);
  const [bias, before, gate] = [numbers(n, 4), numbers(rows * n, 11), numbers(2 * n, 12)];
  const [down, up] = [numbers(rank * k, 13), numbers(n * rank, 14)];
  const y =
    output === 'f32'
      ? scope.float32([rows, n], 'activations', before)
      : scope.tensor('float16', [rows, n], 'activations');
  const count = scope.tensor('int32', [1], 'activations');
  const t = wholeRows(scope.float32([rows, Math.max(1, rank)], 'activations'));
  const input = wholeRows(upload(scope, x, 'f16'));
  const branch = downShape(shape);
  const weight = rank > 0 ? upload(scope, down, 'f32') : null;
  const runs = [
    ...(weight ? [linearDispatch(variant, branch, { rows, x: input, y: t, weight })] : []),
    linearDispatch(variant, shape, {
      rows,
      x: input,
      y: wholeRows(y),
      values: scope.tensor('uint8', [values.length], 'activations', values),
      scales: upload(scope, scales, 'f32'),
      bias: upload(scope, bias, 'f32'),
      ...(rank > 0 && { t, up: upload(scope, up, 'f32') }),
      // The second row of two.
      ...(epilogue === 'gated' && {
        gate: { ...wholeRows(upload(scope, gate, 'f32')), firstRow: 1 },
      }),
      ...(counted && { overflows: count }),
    }),
  ];
  const dequantised = reference.dequantise(values, scales, bits);
  const sums = reference.linear(x, dequantised, bias, { rows, inner: k, columns: n });
  const inner = reference.linear(x, down, new Float32Array(rank), {
    rows,
    inner: k,
    columns: rank,
  });
  const added = reference.linear(inner, up, new Float32Array(n), { rows, inner: rank, columns: n });
  const expected = sums.map((sum, i) => {
    const value = sum + (added[i] ?? 0);
    if (epilogue === 'gelu') return gelu(value);
    if (epilogue === 'none') return value;
    return (before[i] ?? 0) + value * (epilogue === 'gated' ? (gate[n + (i % n)] ?? 0) : 1);
  });
  const verdict = await judge(
    device,
    runs,
    y as ReadableTensor,
    clamped(expected, output),
    n,
    variant.shared === 'f16' || variant.matrix ? roundedTiles : tolerances[output],
  );
  if (verdict !== null || !counted) return verdict;
  const found = await readCount(device, scope, count);
  // Results so close to the largest f16 may lie on either side.
  const [least, most] = [1 + roundedTiles, 1 - roundedTiles].map((factor) =>
    groupsBeyond(expected, factor * largestHalf),
  );
  return found >= (least ?? 0) && found <= (most ?? 0) ? null : `${found} overflows were counted`;
}

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

/** An integer is read as the bits of a float: only floats are read from a device. */
async function readCount({ backend }: GateDevice, scope: Scope, count: DeviceTensor) {
  const bits = scope.float32([1], 'activations');
  backend.copy(count, 0, bits, 0, 1);
  return new Uint32Array((await backend.read(bits)).buffer)[0] ?? 0;
}

/** A variant of the attention kernels, with heads that lie between each other and a last key of its own weight. */
export async function checkAttention(
  device: GateDevice,
  variant: AttentionVariant,
): Promise<Verdict> {
  const [heads, size, rows, keys] = [2, 128, 77, 333];
  const usual = { scale: 1 / Math.sqrt(size), spread: 3, tolerance: tolerances.f16 };
  const cases = [
    { ...usual, bias: 'none' },
    { ...usual, bias: 'last' },
    // All logits are equal: the result is the mean of v.
    { ...usual, bias: 'none', spread: 0, tolerance: 1e-3 },
    // Logits of about ±10⁴, which f32 rounds by 10⁻³: mostly one key takes everything.
    { ...usual, bias: 'none', scale: 300, tolerance: 1e-2 },
  ] as const;
  return checkEach(device, cases, (scope, { bias, scale, spread, tolerance }, index) => {
    const shape = attentionShape(bias);
    const q = stored(
      numbers(rows * heads * size, 5).map((value) => value * spread),
      'f16',
    );
    const k = stored(numbers(keys * heads * size, 6), 'f16');
    const v = stored(numbers(keys * heads * size, 7 + index), 'f16');
    const out = scope.tensor('float16', [rows, heads * size], 'activations');
    const view = (values: Float32Array<ArrayBuffer>) =>
      interleaved(upload(scope, values, 'f16'), heads, size);
    const lastBias = 2.5;
    const run = attentionDispatch(variant, shape, {
      ...{ q: view(q), k: view(k), v: view(v), out: interleaved(out, heads, size) },
      ...{ heads, rows, keys, scale },
      ...(bias === 'last' && { lastBias }),
    });
    const logits = new Float64Array(rows * keys);
    if (bias === 'last') for (let row = 1; row <= rows; row++) logits[row * keys - 1] = lastBias;
    // The reference divides by the root of the size itself.
    const scaled = Float64Array.from(q, (value) => value * scale * Math.sqrt(size));
    const shapes = { rows, keys, heads, size };
    const expected = reference.attention(scaled, k, v, logits, shapes);
    return judge(device, [run], out as ReadableTensor, expected, heads * size, tolerance);
  });
}

/** The shape of a convolution that {@link checkConvolution} runs: what it adds is in f16. */
export const checkedConvolution: ConvolutionShape = {
  ...convolutionShape('f32'),
  residual: 'same',
};

/** A variant of the convolutions, over one frame and over three. */
export async function checkConvolution(
  device: GateDevice,
  variant: ConvolutionVariant,
): Promise<Verdict> {
  const [height, width, channels, filters, taps] = [11, 7, 20, 132, 9];
  const pixels = height * width;
  const order = {
    ...{ blocks: 3, filters, channels, taps },
    strides: { block: filters * channels * taps, filter: channels * taps, channel: taps, tap: 1 },
  };
  const block = filters * channels * taps;
  const weight = stored(numbers(3 * block, 8), 'f16');
  const bias = numbers(filters, 9);
  const side = stored(numbers(pixels * filters, 15), 'f16');
  return checkEach(device, [1, 3], (scope, frames) => {
    const images = Array.from({ length: frames }, (_, age) =>
      stored(hostileRows(pixels, channels, 10 + age), 'f16'),
    );
    const dims = packedDims(packedRows(order), filters);
    const weights = scope.tensor('float16', dims, 'activations');
    const y = scope.float32([pixels, filters], 'activations');
    const runs = convolutionDispatches(device.compute, variant, checkedConvolution, {
      x: images.map((image) => upload(scope, image, 'f16')),
      ...{
        weights,
        bias: upload(scope, bias, 'f32'),
        side: upload(scope, side, 'f16'),
        sideInputs: filters,
        y,
        height,
        width,
        inputs: channels,
        filters,
      },
      ...{ kernel: [3, 3], pads: [1, 1], outputHeight: height, outputWidth: width },
    });
    const expected = Float64Array.from(side);
    for (const [age, image] of images.entries()) {
      const part = reference.convolution(
        image,
        weight.subarray(age * block, (age + 1) * block),
        age === 0 ? bias : new Float32Array(filters),
        { layout: 'nhwc', images: 1, height, width, channels, filters },
      );
      part.forEach((value, i) => {
        expected[i] = (expected[i] ?? 0) + value;
      });
    }
    const pack = packJob(upload(scope, weight, 'f32'), order, weights);
    return judge(device, [pack, ...runs], y, expected, filters, tolerances.f32);
  });
}

/** Checks cases one after another, each in memory of its own, until one is wrong. */
export async function checkEach<Case>(
  { backend }: GateDevice,
  cases: readonly Case[],
  check: (scope: Scope, one: Case, index: number) => Promise<Verdict>,
): Promise<Verdict> {
  for (const [index, one] of cases.entries()) {
    const scope = new Scope(backend);
    try {
      const verdict = await check(scope, one, index);
      if (verdict !== null) return verdict;
    } finally {
      scope.dispose();
    }
  }
  return null;
}

/** Runs and compares row by row: a row of large numbers must not hide the others. */
export async function judge(
  { backend, compute, spoil = (job) => job }: GateDevice,
  jobs: readonly Dispatch[],
  y: ReadableTensor,
  expected: Float64Array,
  width: number,
  tolerance: number,
): Promise<Verdict> {
  await compute.dispatch(jobs.map(spoil));
  const values = await backend.read(y);
  if (!values.every(Number.isFinite)) return 'a number is not finite';
  let worst = 0;
  for (let start = 0; start < values.length; start += width) {
    const error = relativeRms(
      values.subarray(start, start + width),
      expected.subarray(start, start + width),
    );
    worst = Math.max(worst, error);
  }
  return worst <= tolerance ? null : `the error is ${worst.toExponential(1)}`;
}

/** The same pseudo-random numbers in [−1, 1) in each run. */
export function numbers(count: number, salt: number): Float32Array<ArrayBuffer> {
  let state = Math.imul(salt + 1, 0x9e3779b1) >>> 0;
  return Float32Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2147483648 - 1;
  });
}

/** Rows of usual numbers, and among them: one of zeros, small ones, large ones, f16's largest; channels of outliers. */
export function hostileRows(rows: number, width: number, salt = 1): Float32Array<ArrayBuffer> {
  const values = numbers(rows * width, salt);
  const scaleRow = (row: number, change: (value: number) => number) => {
    for (let i = row * width; i < (row + 1) * width; i++) values[i] = change(values[i] ?? 0);
  };
  for (let row = 0; row < rows; row++) {
    for (let c = 0; c < 4; c++) values[row * width + c] = (values[row * width + c] ?? 0) * 40;
  }
  // Where GELU is neither 0 nor straight.
  scaleRow(1, (value) => value / 20);
  scaleRow(3, () => 0);
  scaleRow(5, (value) => value * 1e4);
  scaleRow(7, (value) => Math.sign(value) * largestHalf);
  return values;
}

/** The numbers that a storage keeps. */
export function stored(
  values: Float32Array<ArrayBuffer>,
  storage: Storage,
): Float32Array<ArrayBuffer> {
  return storage === 'f32' ? values : fromHalf(toHalf(values));
}

export function clamped(values: Float64Array, storage: Storage): Float64Array {
  if (storage === 'f32') return values;
  return values.map((value) => Math.max(-largestHalf, Math.min(largestHalf, value)));
}

export function upload(
  scope: Scope,
  values: Float32Array<ArrayBuffer>,
  storage: Storage,
): DeviceTensor<'float32'> | DeviceTensor<'float16'> {
  return storage === 'f32'
    ? scope.float32([values.length], 'activations', values)
    : scope.tensor('float16', [values.length], 'activations', toHalf(values));
}

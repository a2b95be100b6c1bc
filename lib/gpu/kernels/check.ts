import { memoised } from '../../graph';
import { type Backend, Scope } from '../backend';
import * as reference from '../reference';
import { relativeRms } from '../self-test';
import type { DeviceTensor, ReadableTensor } from '../tensor';
import { type AttentionRun, attentionDispatch } from './attention';
import { matrixAttentionDispatch } from './attention-matrix';
import type {
  AttentionShape,
  AttentionVariant,
  ConvolutionShape,
  ConvolutionVariant,
  LinearShape,
  LinearVariant,
  MatrixAttentionVariant,
} from './choice';
import type { Compute, Dispatch } from './compute';
import { withoutWindow } from './convolution-matrix';
import { convolutionDispatches, wholeKernel } from './convolution-run';
import { packedDims, packedRows, packJob } from './convolution-weights';
import { fromBF16, fromHalf, toBF16, toHalf } from './half';
import type { Kernel, Storage } from './kernel';
import { linearDispatch, linearKernel } from './linear';
import {
  attentionShape,
  convolutionShape,
  interleaved,
  linearShape,
  sameSize,
  wholeRows,
} from './tuned-shapes';

/*
 * The check of the tuner: does a variant compute right numbers on this device? Small odd sizes, since kernels fail
 * at the incomplete tiles of an edge, and extreme numbers; the expected result is computed in double precision
 * from the operands as they are stored.
 */

/** Largest relative error of a row, by how the result is stored. */
export const tolerances: Readonly<Record<Storage, number>> = { f32: 1e-5, f16: 5e-4 };
/** The same where the tiles are f16: they hold rounded weights. Rows of outliers show it most. */
const roundedTiles = 1e-3;
/** The same of sums that matrix units add up from products of f16: how they round is up to them. */
const matrixSums = 1e-4;
const largestHalf = 65504;

/** What a check runs on. */
export interface CheckDevice {
  readonly backend: Backend;
  readonly compute: Compute;
  /** Changes what is run: for tests, which plant errors. */
  readonly edit?: (job: Dispatch) => Dispatch;
}

/** Why a variant must not be used; null where its numbers are right. */
export type CheckResult = string | null;

/**
 * What is run of a linear variant: each epilogue and both kinds of blocks, as a block of the transformer has them,
 * and with `rank` a LoRA's branch, whose first product is a linear of its own.
 */
const linearCases: readonly LinearShape[] = [
  { ...linearShape('small'), epilogue: 'added' },
  { ...linearShape('clamped'), epilogue: 'gelu', counted: true },
  { ...linearShape('small'), n: 76, weight: 'q4', rank: 12, up: 'bf16', epilogue: 'gated' },
];

/** `x·downᵀ` of a LoRA. */
function downShape({ k, input, rank, up = 'f32' }: LinearShape): LinearShape {
  const plain = { output: 'f32', bias: false, rank: 0, epilogue: 'none' } as const;
  return { k, n: rank, input, weight: up, ...plain };
}

/** The kernels that {@link checkLinear} runs. */
export function checkedLinears(variant: LinearVariant): Kernel[] {
  const shapes = linearCases.flatMap((shape) =>
    shape.rank > 0 ? [downShape(shape), shape] : [shape],
  );
  return shapes.map((shape) => linearKernel(variant, shape));
}

/** A variant of the linear kernels. */
export async function checkLinear(
  device: CheckDevice,
  variant: LinearVariant,
): Promise<CheckResult> {
  return checkEach(device, linearCases, (scope, shape) =>
    checkShape(device, scope, variant, shape),
  );
}

async function checkShape(
  device: CheckDevice,
  scope: Scope,
  variant: LinearVariant,
  shape: LinearShape,
): Promise<CheckResult> {
  const { k, n, rank, up = 'f32', output } = shape;
  const x = stored(extremeRows(linearRows, k), 'f16');
  const input = wholeRows(upload(scope, x, 'f16'));
  const weight = randomWeight(scope, shape);
  const branch = randomBranch(scope, shape);
  const epilogue = randomEpilogue(scope, shape);
  const down = stored(numbers(rank * k, 13), up);
  const runs = [
    ...(branch
      ? [
          linearDispatch(variant, downShape(shape), {
            rows: linearRows,
            x: input,
            y: branch.operands.t,
            weight: upload(scope, down, up),
          }),
        ]
      : []),
    linearDispatch(variant, shape, {
      rows: linearRows,
      x: input,
      ...weight.operands,
      ...branch?.operands,
      ...epilogue.operands,
    }),
  ];
  const sums = reference.linear(x, weight.values, epilogue.bias, {
    rows: linearRows,
    inner: k,
    columns: n,
  });
  const inner = { rows: linearRows, inner: k, columns: rank };
  branch?.add(sums, reference.linear(x, down, new Float32Array(rank), inner));
  const tolerance = variant.shared === 'f16' || variant.matrix ? roundedTiles : tolerances[output];
  return epilogue.compare(device, runs, [{ sums, tolerance }]);
}

/** Rows of x in the cases of linear kernels. */
export const linearRows = 197;

/** A weight in blocks with random content. */
export function randomWeight(scope: Scope, { k, n, weight }: LinearShape) {
  const bits = weight === 'q4' ? 4 : 8;
  const values = Uint8Array.from(numbers((n * k * bits) / 8, 2), (value) => 128 + 127.9 * value);
  const scales = numbers((n * k) / 32, 3).map((value) => (1.5 + value) / 2 ** bits);
  return {
    operands: {
      values: scope.tensor('uint8', [values.length], 'activations', values),
      scales: upload(scope, scales, 'f32'),
    },
    /** [n, k] */
    values: reference.dequantise(values, scales, bits),
  };
}

/** The second product of a LoRA with random content; null for a shape without one. */
export function randomBranch(scope: Scope, { n, rank, up: type = 'f32' }: LinearShape) {
  if (rank === 0) return null;
  const up = stored(numbers(n * rank, 14), type);
  return {
    operands: {
      t: wholeRows(scope.float32([linearRows, rank], 'activations')),
      up: upload(scope, up, type),
    },
    /** Adds what it makes of t, [rows, rank], to sums, [rows, n]. */
    add(sums: Float64Array, t: ArrayLike<number>): void {
      const sizes = { rows: linearRows, inner: rank, columns: n };
      const added = reference.linear(t, up, new Float32Array(n), sizes);
      added.forEach((value, i) => {
        sums[i] = (sums[i] ?? 0) + value;
      });
    },
  };
}

/** What follows the sums of a linear, with random content. */
export function randomEpilogue(scope: Scope, { n, output, epilogue, counted }: LinearShape) {
  const [bias, before, gate] = [numbers(n, 4), numbers(linearRows * n, 11), numbers(2 * n, 12)];
  const y =
    output === 'f32'
      ? scope.float32([linearRows, n], 'activations', before)
      : scope.tensor('float16', [linearRows, n], 'activations');
  const overflows = scope.tensor('int32', [1], 'activations');
  const finished = (value: number, i: number) => {
    if (epilogue === 'gelu') return gelu(value);
    if (epilogue === 'none') return value;
    return (before[i] ?? 0) + value * (epilogue === 'gated' ? (gate[n + (i % n)] ?? 0) : 1);
  };
  return {
    bias,
    operands: {
      y: wholeRows(y),
      bias: upload(scope, bias, 'f32'),
      // The second row of two.
      ...(epilogue === 'gated' && {
        gate: { ...wholeRows(upload(scope, gate, 'f32')), firstRow: 1 },
      }),
      ...(counted && { overflows }),
    },
    /** Runs jobs and compares what they give with the results of sums, bias included; overflows with the first. */
    async compare(
      device: CheckDevice,
      jobs: readonly Dispatch[],
      of: readonly { readonly sums: Float64Array; readonly tolerance: number }[],
    ): Promise<CheckResult> {
      const results = of.map(({ sums }) => sums.map(finished));
      const expected = results.map((values, i) => {
        return { values: clamped(values, output), tolerance: of[i]?.tolerance ?? 0 };
      });
      const reason = await compare(device, jobs, y as ReadableTensor, n, expected);
      const [first] = results;
      if (reason !== null || !counted || !first) return reason;
      const count = await readCount(device, scope, overflows);
      // Results so close to the largest f16 may lie on either side.
      const [least, most] = [1 + roundedTiles, 1 - roundedTiles].map((factor) =>
        groupsBeyond(first, factor * largestHalf),
      );
      return count >= (least ?? 0) && count <= (most ?? 0)
        ? null
        : `${count} overflows were counted`;
    },
  };
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
async function readCount({ backend }: CheckDevice, scope: Scope, count: DeviceTensor) {
  const bits = scope.float32([1], 'activations');
  backend.copy(count, 0, bits, 0, 1);
  return new Uint32Array((await backend.read(bits)).buffer)[0] ?? 0;
}

/** A variant of the attention kernels, with heads that lie between each other and a last key of its own weight. */
export function checkAttention(
  device: CheckDevice,
  variant: AttentionVariant,
): Promise<CheckResult> {
  return checkAttended(device, ['none', 'last'], tolerances.f16, (shape, run) =>
    attentionDispatch(variant, shape, run),
  );
}

/** The same of matrices, whose weights are f16. */
export function checkMatrixAttention(
  device: CheckDevice,
  variant: MatrixAttentionVariant,
): Promise<CheckResult> {
  return checkAttended(device, ['none'], roundedTiles, (shape, run) =>
    matrixAttentionDispatch(variant, shape, run),
  );
}

function checkAttended(
  device: CheckDevice,
  biases: readonly ('none' | 'last')[],
  tolerance: number,
  dispatch: (shape: AttentionShape, run: AttentionRun) => Dispatch,
): Promise<CheckResult> {
  const [heads, size, rows, keys] = [2, 128, 77, 333];
  const usual = { bias: 'none', scale: 1 / Math.sqrt(size), spread: 3, tolerance } as const;
  const cases = [
    ...biases.map((bias) => ({ ...usual, bias })),
    // All logits are equal: the result is the mean of v.
    { ...usual, spread: 0, tolerance: 1e-3 },
    // Logits of about ±10⁴, which f32 rounds by 10⁻³: mostly one key takes everything.
    { ...usual, scale: 300, tolerance: 1e-2 },
  ];
  return checkEach(device, cases, (scope, { bias, scale, spread, ...of }, index) => {
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
    const run = dispatch(shape, {
      q: view(q),
      k: view(k),
      v: view(v),
      out: interleaved(out, heads, size),
      heads,
      rows,
      keys,
      scale,
      ...(bias === 'last' && { lastBias }),
    });
    const logits = new Float64Array(rows * keys);
    if (bias === 'last') for (let row = 1; row <= rows; row++) logits[row * keys - 1] = lastBias;
    // The reference divides by the root of the size itself.
    const scaled = Float64Array.from(q, (value) => value * scale * Math.sqrt(size));
    const shapes = { rows, keys, heads, size };
    const values = reference.attention(scaled, k, v, logits, shapes);
    return compare(device, [run], out as ReadableTensor, heads * size, [{ ...of, values }]);
  });
}

/** The shape of a convolution that {@link checkConvolution} runs: what it adds is in f16. */
export const checkedConvolution: ConvolutionShape = {
  ...convolutionShape('f32'),
  residual: 'same',
};

const convolved = { height: 9, width: 19, channels: 40, filters: 136, taps: 9 };

/** Numbers of a convolution over so many frames, and its result in double precision. */
const convolutionNumbers = memoised((frames: number) => {
  const { height, width, channels, filters, taps } = convolved;
  const pixels = height * width;
  const block = filters * channels * taps;
  const weight = stored(numbers(3 * block, 8), 'f16');
  const bias = numbers(filters, 9);
  const side = stored(numbers(pixels * filters, 15), 'f16');
  const images = Array.from({ length: frames }, (_, age) =>
    stored(extremeRows(pixels, channels, 10 + age), 'f16'),
  );
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
  return { weight, bias, side, images, expected };
});

/** The kernels that {@link checkConvolution} runs. */
export function checkedConvolutions(variant: ConvolutionVariant): Kernel[] {
  return [variant, withoutWindow(variant)].map((form) => wholeKernel(form, checkedConvolution));
}

/** A variant of the convolutions, over three frames, and over one in the form that takes other sizes of filters. */
export async function checkConvolution(
  device: CheckDevice,
  variant: ConvolutionVariant,
): Promise<CheckResult> {
  const { height, width, channels, filters, taps } = convolved;
  const order = {
    blocks: 3,
    filters,
    channels,
    taps,
    strides: { block: filters * channels * taps, filter: channels * taps, channel: taps, tap: 1 },
  };
  return checkEach(device, [1, 3], (scope, frames) => {
    const { weight, bias, side, images, expected } = convolutionNumbers(frames);
    const dims = packedDims(packedRows(order), filters);
    const weights = scope.tensor('float16', dims, 'activations');
    const y = scope.float32([height * width, filters], 'activations');
    const form = frames === 1 ? withoutWindow(variant) : variant;
    const runs = convolutionDispatches(device.compute, form, checkedConvolution, {
      x: images.map((image) => upload(scope, image, 'f16')),
      weights,
      bias: upload(scope, bias, 'f32'),
      side: upload(scope, side, 'f16'),
      sideInputs: filters,
      y,
      ...sameSize(convolved),
      filters,
    });
    const pack = packJob(upload(scope, weight, 'f32'), order, weights);
    const tolerance = variant.matrix ? matrixSums : tolerances.f32;
    return compare(device, [pack, ...runs], y, filters, [{ values: expected, tolerance }]);
  });
}

/** Checks cases one after another, each in memory of its own, until one is wrong. */
export async function checkEach<Case>(
  { backend }: CheckDevice,
  cases: readonly Case[],
  check: (scope: Scope, one: Case, index: number) => Promise<CheckResult>,
): Promise<CheckResult> {
  for (const [index, one] of cases.entries()) {
    const scope = new Scope(backend);
    try {
      const reason = await check(scope, one, index);
      if (reason !== null) return reason;
    } finally {
      scope.dispose();
    }
  }
  return null;
}

/** Numbers that a result may differ from by so much, relative to a row. */
interface Expected {
  readonly values: Float64Array;
  readonly tolerance: number;
}

/** Runs and compares row by row: a row of large numbers must not hide the others. */
export async function compare(
  { backend, compute, edit = (job) => job }: CheckDevice,
  jobs: readonly Dispatch[],
  y: ReadableTensor,
  width: number,
  expected: readonly Expected[],
): Promise<CheckResult> {
  await compute.dispatch(jobs.map(edit));
  const values = await backend.read(y);
  if (!values.every(Number.isFinite)) return 'a number is not finite';
  for (const { values: others, tolerance } of expected) {
    let worst = 0;
    for (let start = 0; start < values.length; start += width) {
      const row = [start, start + width] as const;
      worst = Math.max(worst, relativeRms(values.subarray(...row), others.subarray(...row)));
    }
    if (!(worst <= tolerance)) return `the error is ${worst.toExponential(1)}`;
  }
  return null;
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
export function extremeRows(rows: number, width: number, salt = 1): Float32Array<ArrayBuffer> {
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
  storage: Storage | 'bf16',
): Float32Array<ArrayBuffer> {
  if (storage === 'bf16') return fromBF16(toBF16(values));
  return storage === 'f32' ? values : fromHalf(toHalf(values));
}

export function clamped(values: Float64Array, storage: Storage): Float64Array {
  if (storage === 'f32') return values;
  return values.map((value) => Math.max(-largestHalf, Math.min(largestHalf, value)));
}

export function upload(
  scope: Scope,
  values: Float32Array<ArrayBuffer>,
  storage: Storage | 'bf16',
): DeviceTensor<'float32'> | DeviceTensor<'float16'> {
  return storage === 'f32'
    ? scope.float32([values.length], 'activations', values)
    : scope.tensor(
        'float16',
        [values.length],
        'activations',
        storage === 'f16' ? toHalf(values) : toBF16(values),
      );
}

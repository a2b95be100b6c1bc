import { type Backend, type DeviceTensor, type ReadableTensor, Scope } from '../backend';
import * as reference from '../reference';
import { relativeRms } from '../self-test';
import { type AttentionVariant, attentionDispatch } from './attention';
import type { Compute, Dispatch } from './compute';
import type { ConvolutionVariant } from './convolution';
import { convolutionDispatches } from './convolution-run';
import { packedDims, packedRows, packJob } from './convolution-weights';
import { fromHalf, toHalf } from './half';
import type { Storage } from './kernel';
import { type LinearShape, type LinearVariant, linearDispatch } from './linear';
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
const tolerances: Readonly<Record<Storage, number>> = { f32: 1e-5, f16: 5e-4 };
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

/** A variant of the linear kernels, with f32 and with f16 results. */
export async function checkLinear(device: GateDevice, variant: LinearVariant): Promise<Verdict> {
  for (const shape of [linearShape('small'), linearShape('clamped')]) {
    const verdict = await inScope(device, (scope) => checkShape(device, scope, variant, shape));
    if (verdict !== null) return verdict;
  }
  return null;
}

async function checkShape(
  device: GateDevice,
  scope: Scope,
  variant: LinearVariant,
  shape: LinearShape,
): Promise<Verdict> {
  const { k, n, output } = shape;
  const rows = 197;
  const x = stored(hostileRows(rows, k), 'f16');
  const values = Uint8Array.from(numbers(n * k, 2), (value) => 128 + Math.floor(value * 127.9));
  const scales = numbers((n * k) / 32, 3).map((value) => (1.5 + value) / 256);
  const bias = numbers(n, 4);
  const y = scope.tensor(output === 'f32' ? 'float32' : 'float16', [rows, n], 'activations');
  const run = linearDispatch(variant, shape, {
    rows,
    x: wholeRows(upload(scope, x, 'f16')),
    y: wholeRows(y),
    values: scope.tensor('uint8', [values.length], 'activations', values),
    scales: upload(scope, scales, 'f32'),
    bias: upload(scope, bias, 'f32'),
  });
  const weight = reference.dequantise(values, scales, 8);
  const expected = reference.linear(x, weight, bias, { rows, inner: k, columns: n });
  return judge(
    device,
    [run],
    y as ReadableTensor,
    clamped(expected, output),
    n,
    variant.shared === 'f16' ? roundedTiles : tolerances[output],
  );
}

/** A variant of the attention kernels, with heads that lie between each other and a last key of its own weight. */
export async function checkAttention(
  device: GateDevice,
  variant: AttentionVariant,
): Promise<Verdict> {
  const [heads, size, rows, keys] = [2, 128, 77, 333];
  const cases = [
    { scale: 1 / Math.sqrt(size), spread: 3, tolerance: tolerances.f16 },
    // All logits are equal: the result is the mean of v.
    { scale: 1 / Math.sqrt(size), spread: 0, tolerance: 1e-3 },
    // Logits of about ±10⁴, which f32 rounds by 10⁻³: mostly one key takes everything.
    { scale: 300, spread: 3, tolerance: 1e-2 },
  ];
  for (const bias of ['none', 'last'] as const) {
    const shape = attentionShape(bias);
    for (const [index, { scale, spread, tolerance }] of cases.entries()) {
      const verdict = await inScope(device, (scope) => {
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
        if (bias === 'last')
          for (let row = 1; row <= rows; row++) logits[row * keys - 1] = lastBias;
        // The reference divides by the root of the size itself.
        const scaled = Float64Array.from(q, (value) => value * scale * Math.sqrt(size));
        const shapes = { rows, keys, heads, size };
        const expected = reference.attention(scaled, k, v, logits, shapes);
        return judge(device, [run], out as ReadableTensor, expected, heads * size, tolerance);
      });
      if (verdict !== null) return verdict;
    }
  }
  return null;
}

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
  for (const frames of [1, 3]) {
    const verdict = await inScope(device, (scope) => {
      const images = Array.from({ length: frames }, (_, age) =>
        stored(hostileRows(pixels, channels, 10 + age), 'f16'),
      );
      const dims = packedDims(packedRows(order), filters);
      const weights = scope.tensor('float16', dims, 'activations');
      const y = scope.float32([pixels, filters], 'activations');
      const runs = convolutionDispatches(device.compute, variant, convolutionShape('f32'), {
        x: images.map((image) => upload(scope, image, 'f16')),
        ...{
          weights,
          bias: upload(scope, bias, 'f32'),
          y,
          height,
          width,
          inputs: channels,
          filters,
        },
        ...{ kernel: [3, 3], pads: [1, 1], outputHeight: height, outputWidth: width },
      });
      const expected = new Float64Array(pixels * filters);
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
    if (verdict !== null) return verdict;
  }
  return null;
}

async function inScope<T>({ backend }: GateDevice, work: (scope: Scope) => Promise<T>): Promise<T> {
  const scope = new Scope(backend);
  try {
    return await work(scope);
  } finally {
    scope.dispose();
  }
}

/** Runs and compares row by row: a row of large numbers must not hide the others. */
async function judge(
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
function numbers(count: number, salt: number): Float32Array<ArrayBuffer> {
  let state = Math.imul(salt + 1, 0x9e3779b1) >>> 0;
  return Float32Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2147483648 - 1;
  });
}

/** Rows of usual numbers, and among them: one of zeros, large ones, f16's largest, and channels of outliers. */
function hostileRows(rows: number, width: number, salt = 1): Float32Array<ArrayBuffer> {
  const values = numbers(rows * width, salt);
  const scaleRow = (row: number, change: (value: number) => number) => {
    for (let i = row * width; i < (row + 1) * width; i++) values[i] = change(values[i] ?? 0);
  };
  for (let row = 0; row < rows; row++) {
    for (let c = 0; c < 4; c++) values[row * width + c] = (values[row * width + c] ?? 0) * 40;
  }
  scaleRow(3, () => 0);
  scaleRow(5, (value) => value * 1e4);
  scaleRow(7, (value) => Math.sign(value) * largestHalf);
  return values;
}

/** The numbers that a storage keeps. */
function stored(values: Float32Array<ArrayBuffer>, storage: Storage): Float32Array<ArrayBuffer> {
  return storage === 'f32' ? values : fromHalf(toHalf(values));
}

function clamped(values: Float64Array, storage: Storage): Float64Array {
  if (storage === 'f32') return values;
  return values.map((value) => Math.max(-largestHalf, Math.min(largestHalf, value)));
}

function upload(
  scope: Scope,
  values: Float32Array<ArrayBuffer>,
  storage: Storage,
): DeviceTensor<'float32'> | DeviceTensor<'float16'> {
  return storage === 'f32'
    ? scope.float32([values.length], 'activations', values)
    : scope.tensor('float16', [values.length], 'activations', toHalf(values));
}

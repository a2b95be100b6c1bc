import { type Backend, elementCount, Scope } from '../backend';
import { numbers } from '../reference';
import { relativeRms } from '../self-test';
import type { DeviceTensor, ReadableTensor } from '../tensor';
import type { Compute, Dispatch } from './compute';
import { fromBF16, fromHalf, toBF16, toHalf } from './half';
import type { Storage } from './kernel';

/*
 * The check of the tuner: does a variant compute right numbers on this device? Small odd sizes, since kernels fail
 * at the incomplete tiles of an edge, and extreme numbers; the expected result is computed in double precision
 * from the operands as they are stored. The files of the families have their cases.
 */

/** Largest relative error of a row, by how the result is stored. */
export const tolerances: Readonly<Record<Storage, number>> = { f32: 1e-5, f16: 5e-4 };
/** The same where the tiles are f16: they hold rounded weights. Rows of outliers show it most. */
export const roundedTiles = 1e-3;
export const largestHalf = 65504;

/** What a check runs on. */
export interface CheckDevice {
  readonly backend: Backend;
  readonly compute: Compute;
  /** Changes what is run: for tests, which plant errors. */
  readonly edit?: (job: Dispatch) => Dispatch;
}

/** Why a variant must not be used; null where its numbers are right. */
export type CheckResult = string | null;

/** Numbers that a result may differ from by so much, relative to a row. */
export interface Expected {
  readonly values: Float64Array;
  readonly tolerance: number;
}

/** What a variant has to compute. */
export interface CheckedProblem {
  readonly jobs: readonly Dispatch[];
  readonly y: ReadableTensor;
  /** Of a row of y. */
  readonly width: number;
  readonly expected: readonly Expected[];
  /** One integer, and what it is to be. */
  readonly counted?: {
    readonly tensor: DeviceTensor;
    readonly least: number;
    readonly most: number;
  };
}

/** Computes problems one after another, each in memory of its own, until one is wrong. */
export async function checkEach<Case>(
  device: CheckDevice,
  cases: readonly Case[],
  problemOf: (scope: Scope, one: Case, index: number) => CheckedProblem | Promise<CheckedProblem>,
): Promise<CheckResult> {
  for (const [index, one] of cases.entries()) {
    const scope = new Scope(device.backend);
    try {
      const problem = await problemOf(scope, one, index);
      const reason = await compare(device, scope, problem);
      if (reason !== null) return reason;
    } finally {
      scope.dispose();
    }
  }
  return null;
}

/** Runs and compares row by row: a row of large numbers must not hide the others. */
async function compare(
  device: CheckDevice,
  scope: Scope,
  { jobs, y, width, expected, counted }: CheckedProblem,
): Promise<CheckResult> {
  const { backend, compute, edit = (job) => job } = device;
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
  if (!counted) return null;
  const [count = 0] = new Uint32Array(await readBytes(device, scope, counted.tensor));
  return count >= counted.least && count <= counted.most ? null : `${count} overflows were counted`;
}

/** Integers are read as the bits of floats: only floats are read from a device. */
export async function readBytes(
  { backend }: CheckDevice,
  scope: Scope,
  words: DeviceTensor,
): Promise<ArrayBuffer> {
  const count = elementCount(words.dims);
  const bits = scope.float32([count], 'activations');
  backend.copy(words, 0, bits, 0, count);
  return (await backend.read(bits)).buffer;
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

export function upload(
  scope: Scope,
  values: Float32Array<ArrayBuffer>,
  storage: Storage | 'bf16',
): DeviceTensor<'float32'> | DeviceTensor<'float16'> {
  const dims = [values.length];
  if (storage === 'f32') return scope.float32(dims, 'activations', values);
  const bits = storage === 'f16' ? toHalf(values) : toBF16(values);
  return scope.tensor('float16', dims, 'activations', bits);
}

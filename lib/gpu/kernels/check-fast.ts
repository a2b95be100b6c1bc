import type { Scope } from '../backend';
import * as reference from '../reference';
import type { DeviceTensor, ReadableTensor } from '../tensor';
import { fastAttentionDispatch } from './attention-dp4a';
import {
  packedValues,
  packedWidth,
  type QuantisedValues,
  quantiseRows,
  quantiseValues,
} from './attention-quantise';
import {
  type CheckDevice,
  type CheckResult,
  checkEach,
  compare,
  extremeRows,
  linearRows,
  numbers,
  randomBranch,
  randomEpilogue,
  randomWeight,
  stored,
  tolerances,
  upload,
} from './check';
import type { AttentionVariant, LinearVariant } from './choice';
import type { Kernel } from './kernel';
import { type FastLinearShape, fastLinearDispatch, fastLinearKernel } from './linear-dp4a';
import { quantiseDispatch, quantiseKernel } from './quantise';
import { attentionShape, fastLinearShape, interleaved, wholeRows } from './tuned-shapes';

/*
 * The check of the mode `fast`. A variant has to compute what follows from the integers that the device made, as
 * exactly as the other modes do; and beside that, the rounding to these integers may cost so much.
 */
const linearRounding = 2e-2;
const attentionRounding = 3e-2;

/** A gated sum in place with a LoRA's branch, and GELU to f16 with its overflows; weights in 8 and in 4 bits. */
const linearCases: readonly FastLinearShape[] = [
  { ...fastLinearShape('small'), rank: 12, epilogue: 'gated' },
  { ...fastLinearShape('clamped'), epilogue: 'gelu', counted: true },
];

/** The kernels that {@link checkFastLinear} runs. */
export function checkedFastLinears(variant: LinearVariant): Kernel[] {
  return linearCases.flatMap((shape) => [
    quantiseKernel(shape.k, 'f16'),
    fastLinearKernel(variant, shape),
  ]);
}

/** A variant of the fast linear kernels. */
export async function checkFastLinear(
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
  shape: FastLinearShape,
): Promise<CheckResult> {
  const { k, n, rank, output } = shape;
  const rows = linearRows;
  const numbersOfX = stored(extremeRows(rows, k), 'f16');
  const bytes = scope.tensor('int32', [rows, k / 4], 'activations');
  const blocks = scope.float32([rows, k / 32], 'activations');
  const x = { x: wholeRows(bytes), xScales: wholeRows(blocks) };
  const source = wholeRows(upload(scope, numbersOfX, 'f16'));
  await device.compute.dispatch([quantiseDispatch(k, 'f16', { rows, source, ...x })]);
  const levels = await levelsOf(device, scope, bytes);
  const rounded = await device.backend.read(blocks);
  const weight = randomWeight(scope, shape);
  const branch = randomBranch(scope, shape);
  const epilogue = randomEpilogue(scope, shape);
  // The first product of the branch is that of an exact kernel.
  const t = numbers(rows * rank, 13);
  if (branch) device.backend.write(branch.operands.t.operand.tensor, t);
  const run = fastLinearDispatch(variant, shape, {
    rows,
    ...x,
    ...weight.operands,
    ...branch?.operands,
    ...epilogue.operands,
  });
  const sumsOf = (of: ArrayLike<number>) => {
    const sizes = { rows, inner: k, columns: n };
    const sums = reference.linear(of, weight.values, epilogue.bias, sizes);
    branch?.add(sums, t);
    return sums;
  };
  const integers = Float64Array.from(levels, (level, i) => level * (rounded[i >> 5] ?? 0));
  return epilogue.compare(
    device,
    [run],
    [
      { sums: sumsOf(integers), tolerance: tolerances[output] },
      { sums: sumsOf(numbersOfX), tolerance: linearRounding },
    ],
  );
}

/** A variant of the fast attention kernels, with heads that lie between each other. */
export async function checkFastAttention(
  device: CheckDevice,
  variant: AttentionVariant,
): Promise<CheckResult> {
  const [heads, size, rows, keys] = [2, 128, 77, 333];
  const usual = 1 / Math.sqrt(size);
  // As for the exact kernels.
  const cases = [
    { scale: usual, spread: 3, tolerance: tolerances.f16, rounding: attentionRounding },
    { scale: usual, spread: 0, tolerance: 1e-3 },
    { scale: 300, spread: 3, tolerance: 1e-2 },
  ];
  return checkEach(device, cases, async (scope, { scale, spread, tolerance, ...of }, index) => {
    const random = (count: number, salt: number, change: (value: number) => number) =>
      stored(numbers(count * heads * size, salt).map(change), 'f16');
    const q = random(rows, 5, (value) => value * spread);
    // Their mean would take most of the 8 bits.
    const k = random(keys, 6, (value) => value + 1);
    const v = random(keys, 7 + index, (value) => value);
    const inBytes = async (values: Float32Array<ArrayBuffer>, mean?: DeviceTensor) => {
      const count = values.length / heads / size;
      const y = {
        values: scope.tensor('int32', [heads, count, packedWidth(size)], 'activations'),
        scales: scope.float32([heads, count], 'activations'),
      };
      const x = interleaved(upload(scope, values, 'f16'), heads, size);
      const run = { x, storage: 'f16', headSize: size, heads, rows: count, y } as const;
      await device.compute.dispatch(quantiseRows({ ...run, ...(mean && { mean }) }));
      const levels = await levelsOf(device, scope, y.values);
      const scales = await device.backend.read(y.scales);
      // From [heads, rows, size] to [rows, heads·size].
      const back = new Float64Array(values.length);
      levels.forEach((level, i) => {
        const [row, channel] = [Math.floor(i / size), i % size];
        const place = ((row % count) * heads + Math.floor(row / count)) * size + channel;
        back[place] = level * (scales[row] ?? 0);
      });
      return { y, back };
    };
    const [queries, rest] = [
      await inBytes(q),
      await inBytes(k, scope.float32([heads, size], 'activations')),
    ];
    const out = scope.tensor('float16', [rows, heads * size], 'activations');
    const call = {
      q: queries.y,
      k: rest.y,
      heads,
      rows,
      keys,
      scale,
      out: interleaved(out, heads, size),
    };
    const source = interleaved(upload(scope, v, 'f16'), heads, size);
    const shape = attentionShape('none');
    const logits = new Float64Array(rows * keys);
    const resultsOf = (ofQ: ArrayLike<number>, ofK: ArrayLike<number>) => {
      // The reference divides by the root of the size itself.
      const scaled = Float64Array.from(ofQ, (value) => value * scale * Math.sqrt(size));
      return reference.attention(scaled, ofK, v, logits, { rows, keys, heads, size });
    };
    const exact =
      of.rounding === undefined ? [] : [{ values: resultsOf(q, k), tolerance: of.rounding }];
    const y = {
      values: scope.tensor('int32', [heads, packedValues(keys, size)], 'activations'),
      ranges: scope.float32([heads, 2, size], 'activations'),
    };
    const rows8 = { x: source, storage: 'f16', headSize: size, heads, rows: keys, y } as const;
    await device.compute.dispatch(quantiseValues(rows8));
    const run = fastAttentionDispatch(variant, shape, { ...call, v: y });
    const sizes = { rows, keys, heads, size, tile: variant.keys };
    const scaled = queries.back.map((value) => value * scale);
    const values = roundedAttention(
      scaled,
      rest.back,
      await valuesOf(device, scope, y, sizes),
      sizes,
    );
    return compare(device, [run], out as ReadableTensor, heads * size, [
      { values, tolerance: Math.max(tolerance, weightRounding) },
      ...exact,
    ]);
  });
}

/** A weight that lies between two integers may become either of them: so much of a row. */
const weightRounding = 5e-3;

interface Sizes {
  readonly rows: number;
  readonly keys: number;
  readonly heads: number;
  readonly size: number;
  readonly tile: number;
}

/** The values that bytes and ranges stand for, [keys, heads·size]. */
async function valuesOf(
  device: CheckDevice,
  scope: Scope,
  { values, ranges }: QuantisedValues & { values: DeviceTensor; ranges: ReadableTensor },
  { keys, heads, size }: Sizes,
): Promise<Float64Array> {
  const bytes = new Uint8Array((await levelsOf(device, scope, values)).buffer);
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

/** Attention whose weights of each tile of keys are rounded to 255 levels of the largest. */
function roundedAttention(
  q: ArrayLike<number>,
  k: ArrayLike<number>,
  v: Float64Array,
  { rows, keys, heads, size, tile }: Sizes,
): Float64Array {
  const width = heads * size;
  const out = new Float64Array(rows * width);
  for (let head = 0; head < heads; head++) {
    for (let row = 0; row < rows; row++) {
      const start = row * width + head * size;
      const logits = Float64Array.from({ length: keys }, (_, key) => {
        let dot = 0;
        for (let c = 0; c < size; c++) {
          dot += (q[start + c] ?? 0) * (k[key * width + head * size + c] ?? 0);
        }
        return dot;
      });
      const largest = logits.reduce((a, b) => Math.max(a, b));
      const weights = logits.map((logit, key) => {
        const first = key - (key % tile);
        const most = logits.subarray(first, first + tile).reduce((a, b) => Math.max(a, b));
        return Math.round(255 * Math.exp(logit - most)) * Math.exp(most - largest);
      });
      const sum = weights.reduce((a, b) => a + b);
      for (const [key, weight] of weights.entries()) {
        for (let c = 0; c < size; c++) {
          out[start + c] =
            (out[start + c] ?? 0) + (weight / sum) * (v[key * width + head * size + c] ?? 0);
        }
      }
    }
  }
  return out;
}

/** Integers of 8 bits, four to a word. */
async function levelsOf({ backend }: CheckDevice, scope: Scope, words: DeviceTensor) {
  const count = words.bytes / 4;
  const bits = scope.float32([count], 'activations');
  backend.copy(words, 0, bits, 0, count);
  return new Int8Array((await backend.read(bits)).buffer);
}

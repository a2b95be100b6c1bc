import type { DeviceTensor, ReadableTensor, Scope } from '../backend';
import * as reference from '../reference';
import type { AttentionVariant } from './attention';
import { fastAttentionDispatch, packedWidth, quantiseRows } from './attention-dp4a';
import {
  checkEach,
  clamped,
  type GateDevice,
  hostileRows,
  judge,
  numbers,
  stored,
  tolerances,
  upload,
  type Verdict,
} from './gate';
import type { Kernel } from './kernel';
import type { LinearVariant } from './linear';
import { type FastLinearShape, fastLinearDispatch, fastLinearKernel } from './linear-dp4a';
import { quantiseDispatch, quantiseKernel } from './quantise';
import { attentionShape, fastLinearShape, interleaved, wholeRows } from './tuned-shapes';

/*
 * The gate of the mode `fast`. A variant has to compute what follows from the integers that the device made, as
 * exactly as the other modes do; and beside that, the rounding to these integers may cost so much.
 */
const linearRounding = 2e-2;
const attentionRounding = 3e-2;

/** Weights in 8 and in 4 bits, results in f32 and in f16. The text of the epilogues is that of the exact kernels. */
const linearCases = [fastLinearShape('small'), fastLinearShape('clamped')];

/** The kernels that {@link checkFastLinear} runs. */
export function checkedFastLinears(variant: LinearVariant): Kernel[] {
  return linearCases.flatMap((shape) => [
    quantiseKernel(shape.k, 'f16'),
    fastLinearKernel(variant, shape),
  ]);
}

/** A variant of the fast linear kernels. */
export async function checkFastLinear(
  device: GateDevice,
  variant: LinearVariant,
): Promise<Verdict> {
  return checkEach(device, linearCases, (scope, shape) =>
    checkShape(device, scope, variant, shape),
  );
}

async function checkShape(
  device: GateDevice,
  scope: Scope,
  variant: LinearVariant,
  shape: FastLinearShape,
): Promise<Verdict> {
  const { k, n, output, weight } = shape;
  const rows = 197;
  const bits = weight === 'q8' ? 8 : 4;
  const numbersOfX = stored(hostileRows(rows, k), 'f16');
  const values = Uint8Array.from(numbers((n * k * bits) / 8, 2), (value) => 128 + value * 127.9);
  const scales = numbers((n * k) / 32, 3).map((value) => (1.5 + value) / 256);
  const bias = numbers(n, 4);
  const bytes = scope.tensor('int32', [rows, k / 4], 'activations');
  const blocks = scope.float32([rows, k / 32], 'activations');
  const x = { x: wholeRows(bytes), xScales: wholeRows(blocks) };
  const source = wholeRows(upload(scope, numbersOfX, 'f16'));
  await device.compute.dispatch([quantiseDispatch(k, 'f16', { rows, source, ...x })]);
  const levels = await levelsOf(device, scope, bytes);
  const rounded = await device.backend.read(blocks);
  const y = scope.tensor(output === 'f32' ? 'float32' : 'float16', [rows, n], 'activations');
  const run = fastLinearDispatch(variant, shape, {
    ...{ rows, ...x, y: wholeRows(y) },
    values: scope.tensor('uint8', [values.length], 'activations', values),
    scales: upload(scope, scales, 'f32'),
    bias: upload(scope, bias, 'f32'),
  });
  const matrix = reference.dequantise(values, scales, bits);
  const judged = (of: ArrayLike<number>, tolerance: number) => {
    const expected = reference.linear(of, matrix, bias, { rows, inner: k, columns: n });
    return judge(device, [run], y as ReadableTensor, clamped(expected, output), n, tolerance);
  };
  const integers = Float64Array.from(levels, (level, i) => level * (rounded[i >> 5] ?? 0));
  return (await judged(integers, tolerances[output])) ?? judged(numbersOfX, linearRounding);
}

/** A variant of the fast attention kernels, with heads that lie between each other. */
export async function checkFastAttention(
  device: GateDevice,
  variant: AttentionVariant,
): Promise<Verdict> {
  const [heads, size, rows, keys] = [2, 128, 77, 333];
  const usual = 1 / Math.sqrt(size);
  // As for the exact kernels.
  const cases = [
    { scale: usual, spread: 3, tolerance: tolerances.f16, rounding: attentionRounding },
    { scale: usual, spread: 0, tolerance: 1e-3 },
    { scale: 300, spread: 3, tolerance: 1e-2 },
  ];
  return checkEach(device, cases, async (scope, { scale, spread, tolerance, rounding }, index) => {
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
    const run = fastAttentionDispatch(variant, attentionShape('none'), {
      ...{ q: queries.y, k: rest.y, heads, rows, keys, scale },
      v: interleaved(upload(scope, v, 'f16'), heads, size),
      out: interleaved(out, heads, size),
    });
    const judged = (ofQ: ArrayLike<number>, ofK: ArrayLike<number>, within: number) => {
      // The reference divides by the root of the size itself.
      const scaled = Float64Array.from(ofQ, (value) => value * scale * Math.sqrt(size));
      const logits = new Float64Array(rows * keys);
      const expected = reference.attention(scaled, ofK, v, logits, { rows, keys, heads, size });
      return judge(device, [run], out as ReadableTensor, expected, heads * size, within);
    };
    const verdict = await judged(queries.back, rest.back, tolerance);
    return verdict ?? (rounding === undefined ? null : judged(q, k, rounding));
  });
}

/** Integers of 8 bits, four to a word. */
async function levelsOf({ backend }: GateDevice, scope: Scope, words: DeviceTensor) {
  const count = words.bytes / 4;
  const bits = scope.float32([count], 'activations');
  backend.copy(words, 0, bits, 0, count);
  return new Int8Array((await backend.read(bits)).buffer);
}

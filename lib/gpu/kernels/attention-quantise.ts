import { memoised } from '../../graph';
import type { DeviceTensor } from '../tensor';
import type { HeadView } from './attention';
import { type Area, load8, place, rowsBinding } from './attention-tile';
import type { Dispatch, Operand } from './compute';
import { defineKernel, integerDots, type Kernel, type Storage } from './kernel';
import { halfFunctions, lines } from './text';

/*
 * What attention of 8-bit integers reads: each row of queries and keys with a scale of its own, and values with a range
 * for each channel of a head. The mean of a head's keys is subtracted from them first, which leaves the softmax as it
 * is and the integers finer (SageAttention, arXiv:2410.02367).
 */

/** Rows of heads in 8 bits: values int32 [heads, rows, {@link packedWidth}], scales float32 [heads, rows]. */
export interface QuantisedHeads {
  readonly values: DeviceTensor | Operand;
  readonly scales: DeviceTensor | Operand;
}

/** 32-bit words of a row in 8 bits. */
export function packedWidth(headSize: number): number {
  return Math.ceil(headSize / 16) * 4;
}

/** Rows of heads that are to be stored in 8 bits. */
interface RowsOfHeads {
  readonly x: HeadView;
  readonly storage: Storage;
  readonly headSize: number;
  readonly heads: number;
  readonly rows: number;
}

/** What all kernels that read such rows are given. */
function readingOf({ x, heads, rows, headSize }: RowsOfHeads) {
  return {
    uniforms: {
      rows,
      xHead: x.headStride / 8,
      xRow: x.rowStride / 8,
      xFirst: x.firstRow,
    },
    flops: heads * rows * headSize,
  };
}

/** Queries or keys that are to be stored in 8 bits. */
export interface QuantiseRun extends RowsOfHeads {
  readonly y: QuantisedHeads;
  /** float32 [heads, headSize], for keys: takes the means that are subtracted. */
  readonly mean?: DeviceTensor | Operand;
}

const needs = [integerDots];
const rowThreads = 64;
const meanThreads = 256;

/** The kernels of {@link quantiseRows}: mean, rows less their mean, and rows as they are. */
export function quantiseKernels(storage: Storage, headSize: number): Kernel[] {
  return [
    meanKernel(storage, headSize),
    quantiseKernel(storage, headSize, true),
    quantiseKernel(storage, headSize, false),
  ];
}

/** Stores rows of heads in 8 bits, less their mean where there is a tensor for it. */
export function quantiseRows(run: QuantiseRun): Dispatch[] {
  const { x, storage, headSize, heads, rows, y, mean } = run;
  const reading = readingOf(run);
  const quantise: Dispatch = {
    ...reading,
    kernel: quantiseKernel(storage, headSize, mean !== undefined),
    operands: { x: x.operand, values: y.values, scales: y.scales, ...(mean && { mean }) },
    groups: heads * Math.ceil(rows / rowThreads),
  };
  if (!mean) return [quantise];
  const kernel = meanKernel(storage, headSize);
  return [{ ...reading, kernel, operands: { x: x.operand, mean }, groups: heads }, quantise];
}

/** Mean of a head's rows: a workgroup per head, threads share the rows of a group of eight channels. */
const meanKernel = memoised((storage: Storage, headSize: number): Kernel => {
  const units = headSize / 8;
  const sharers = Math.floor(meanThreads / units);
  const area: Area = { name: 'sums', element: 'vec4<f32>', count: 2 * sharers * units };
  const each: Area = { name: 'pair', element: 'vec4<f32>', count: 2 };
  return defineKernel({
    name: `mean of heads ${storage} ${headSize}`,
    mode: 'fast',
    bindings: [rowsBinding('x', storage), { name: 'mean', access: 'write', element: 'vec4<f32>' }],
    uniforms: ['rows', 'xHead', 'xRow', 'xFirst'],
    threads: meanThreads,
    workgroupBytes: area.count * 16,
    declarations: `var<workgroup> sums: array<vec4<f32>, ${area.count}>;${halfFunctions}`,
    body: `
  let head = group;
  let unit = thread % ${units}u;
  if (thread < ${sharers * units}u) {
    var pair = array<vec4<f32>, 2>();
    var low = vec4<f32>();
    var high = vec4<f32>();
    for (var row = thread / ${units}u; row < uniforms.rows; row += ${sharers}u) {
      ${load8('x', storage, `${place('x', 'row')} + unit`, each, ['0', '1'])}
      low += pair[0];
      high += pair[1];
    }
    sums[thread * 2u] = low;
    sums[thread * 2u + 1u] = high;
  }
  workgroupBarrier();
  if (thread < ${2 * units}u) {
    var total = vec4<f32>();
    for (var sharer = 0u; sharer < ${sharers}u; sharer++) { total += sums[sharer * ${2 * units}u + thread]; }
    mean[head * ${2 * units}u + thread] = total / f32(uniforms.rows);
  }`,
  });
});

/** A thread per row: its largest magnitude, then its integers. */
const quantiseKernel = memoised((storage: Storage, headSize: number, centred: boolean): Kernel => {
  const units = headSize / 8;
  const vectors = Math.ceil(headSize / 16);
  const pair: Area = { name: 'pair', element: 'vec4<f32>', count: 2 };
  const load = (unit: string) => `${load8('x', storage, `start + ${unit}`, pair, ['0', '1'])}
      ${centred ? [0, 1].map((i) => `pair[${i}] -= mean[(head * ${units}u + ${unit}) * 2u + ${i}u];`).join(' ') : ''}`;
  return defineKernel({
    name: `heads in 8 bits ${storage} ${headSize}${centred ? ' less their mean' : ''}`,
    mode: 'fast',
    bindings: [
      rowsBinding('x', storage),
      ...(centred ? [{ name: 'mean', access: 'read', element: 'vec4<f32>' } as const] : []),
      { name: 'values', access: 'write', element: 'vec2<u32>' },
      { name: 'scales', access: 'write', element: 'f32' },
    ],
    uniforms: ['rows', 'xHead', 'xRow', 'xFirst'],
    threads: rowThreads,
    workgroupBytes: 0,
    needs,
    declarations: halfFunctions,
    body: `
  let rowGroups = (uniforms.rows + ${rowThreads - 1}u) / ${rowThreads}u;
  let head = group / rowGroups;
  let row = group % rowGroups * ${rowThreads}u + thread;
  if (row >= uniforms.rows) { return; }
  let start = ${place('x', 'row')};
  var pair = array<vec4<f32>, 2>();
  var most = vec4<f32>();
  for (var unit = 0u; unit < ${units}u; unit++) {
    ${load('unit')}
    most = max(most, max(abs(pair[0]), abs(pair[1])));
  }
  let largest = max(max(most.x, most.y), max(most.z, most.w));
  let factor = select(0.0, 127.0 / largest, largest > 1e-30);
  let at = head * uniforms.rows + row;
  scales[at] = largest / 127.0;
  for (var unit = 0u; unit < ${units}u; unit++) {
    ${load('unit')}
    values[at * ${2 * vectors}u + unit] = vec2<u32>(
      pack4xI8(vec4<i32>(round(pair[0] * factor))), pack4xI8(vec4<i32>(round(pair[1] * factor))));
  }
  ${2 * vectors > units ? `values[at * ${2 * vectors}u + ${units}u] = vec2<u32>();` : ''}`,
  });
});

/**
 * Rows of values in 8 bits: int32 [heads, rows/4, headSize], the bytes of a word those of four rows; ranges
 * float32 [heads, 2, headSize]: where they begin, and the size of a level.
 */
export interface QuantisedValues {
  readonly values: DeviceTensor | Operand;
  readonly ranges: DeviceTensor | Operand;
}

/** Values that are to be stored in 8 bits, with a range for each channel of a head. */
export interface QuantiseValuesRun extends RowsOfHeads {
  readonly y: QuantisedValues;
}

/** Rows whose bytes make a word. */
export const pack = 4;
const rangeThreads = 256;
const packThreads = 64;

/** 32-bit words of a head's values. */
export function packedValues(rows: number, headSize: number): number {
  return Math.ceil(rows / pack) * headSize;
}

/** The kernels of {@link quantiseValues}. */
export function quantiseValuesKernels(storage: Storage, headSize: number): Kernel[] {
  return [rangeKernel(storage, headSize), packKernel(storage, headSize)];
}

/** Stores rows of heads in 8 bits. */
export function quantiseValues(run: QuantiseValuesRun): Dispatch[] {
  const { x, storage, headSize, heads, rows, y } = run;
  const reading = readingOf(run);
  return [
    {
      ...reading,
      kernel: rangeKernel(storage, headSize),
      operands: { x: x.operand, ranges: y.ranges },
      groups: heads,
    },
    {
      ...reading,
      kernel: packKernel(storage, headSize),
      operands: { x: x.operand, ranges: y.ranges, values: y.values },
      groups: heads * Math.ceil(packedValues(rows, headSize) / 8 / packThreads),
    },
  ];
}

/** Ranges of a head's channels: a workgroup per head, threads share the rows of a group of eight channels. */
const rangeKernel = memoised((storage: Storage, headSize: number): Kernel => {
  const units = headSize / 8;
  const sharers = Math.floor(rangeThreads / units);
  const count = 2 * sharers * units;
  const each: Area = { name: 'pair', element: 'vec4<f32>', count: 2 };
  return defineKernel({
    name: `ranges of heads ${storage} ${headSize}`,
    mode: 'fast',
    bindings: [
      rowsBinding('x', storage),
      { name: 'ranges', access: 'write', element: 'vec4<f32>' },
    ],
    uniforms: ['rows', 'xHead', 'xRow', 'xFirst'],
    threads: rangeThreads,
    workgroupBytes: 2 * count * 16,
    declarations: `var<workgroup> leasts: array<vec4<f32>, ${count}>;
var<workgroup> mosts: array<vec4<f32>, ${count}>;${halfFunctions}`,
    body: `
  let head = group;
  let unit = thread % ${units}u;
  if (thread < ${sharers * units}u) {
    var pair = array<vec4<f32>, 2>();
    var least0 = vec4<f32>(3e38);
    var least1 = vec4<f32>(3e38);
    var most0 = vec4<f32>(-3e38);
    var most1 = vec4<f32>(-3e38);
    for (var row = thread / ${units}u; row < uniforms.rows; row += ${sharers}u) {
      ${load8('x', storage, `${place('x', 'row')} + unit`, each, ['0', '1'])}
      least0 = min(least0, pair[0]);
      least1 = min(least1, pair[1]);
      most0 = max(most0, pair[0]);
      most1 = max(most1, pair[1]);
    }
    leasts[thread * 2u] = least0;
    leasts[thread * 2u + 1u] = least1;
    mosts[thread * 2u] = most0;
    mosts[thread * 2u + 1u] = most1;
  }
  workgroupBarrier();
  if (thread < ${2 * units}u) {
    var least = vec4<f32>(3e38);
    var most = vec4<f32>(-3e38);
    for (var sharer = 0u; sharer < ${sharers}u; sharer++) {
      least = min(least, leasts[sharer * ${2 * units}u + thread]);
      most = max(most, mosts[sharer * ${2 * units}u + thread]);
    }
    ranges[head * ${4 * units}u + thread] = least;
    ranges[head * ${4 * units}u + ${2 * units}u + thread] = (most - least) / 255.0;
  }`,
  });
});

/** A thread per word of each of eight channels. Rows behind the last one are zeros. */
const packKernel = memoised((storage: Storage, headSize: number): Kernel => {
  const units = headSize / 8;
  const pair: Area = { name: 'pair', element: 'vec4<f32>', count: 2 };
  return defineKernel({
    name: `values in 8 bits ${storage} ${headSize}`,
    mode: 'fast',
    bindings: [
      rowsBinding('x', storage),
      { name: 'ranges', access: 'read', element: 'vec4<f32>' },
      { name: 'values', access: 'write', element: 'vec4<u32>' },
    ],
    uniforms: ['rows', 'xHead', 'xRow', 'xFirst'],
    threads: packThreads,
    workgroupBytes: 0,
    declarations: halfFunctions,
    body: `
  let packs = (uniforms.rows + ${pack - 1}u) / ${pack}u;
  let groups = (packs * ${units}u + ${packThreads - 1}u) / ${packThreads}u;
  let head = group / groups;
  let index = group % groups * ${packThreads}u + thread;
  if (index >= packs * ${units}u) { return; }
  let unit = index % ${units}u;
  let firstRow = index / ${units}u * ${pack}u;
  var pair = array<vec4<f32>, 2>();
${[0, 1]
  .map(
    (i) => `  let least${i} = ranges[head * ${4 * units}u + unit * 2u + ${i}u];
  let level${i} = ranges[head * ${4 * units}u + ${2 * units}u + unit * 2u + ${i}u];
  let factor${i} = select(vec4<f32>(), 1.0 / level${i}, level${i} > vec4<f32>(1e-30));
  var words${i} = vec4<u32>();`,
  )
  .join('\n')}
${lines(
  pack,
  (i) => `  if (firstRow + ${i}u < uniforms.rows) {
    ${load8('x', storage, `${place('x', `firstRow + ${i}u`)} + unit`, pair, ['0', '1'])}
${[0, 1].map((half) => `    words${half} |= vec4<u32>(clamp(round((pair[${half}] - least${half}) * factor${half}), vec4<f32>(), vec4<f32>(255.0))) << vec4<u32>(${8 * i}u);`).join('\n')}
  }`,
)}
  let word = (head * packs * ${units}u + index) * 2u;
  values[word] = words0;
  values[word + 1u] = words1;`,
  });
});

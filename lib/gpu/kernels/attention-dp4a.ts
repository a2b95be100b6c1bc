import { memoised } from '../../graph';
import type { DeviceTensor } from '../backend';
import {
  type AttentionRun,
  type AttentionShape,
  type AttentionVariant,
  attentionOperands,
  attentionVariants,
  type HeadView,
} from './attention';
import {
  type Area,
  eachUnit,
  geometryOf,
  lanes,
  lines,
  load8,
  place,
  rowsBinding,
} from './attention-tile';
import { attentionText, type Logits } from './attention-wgsl';
import type { Compute, Dispatch, Operand } from './compute';
import { defineKernel, type Kernel, type Storage } from './kernel';
import { integerDots } from './linear-dp4a';
import { halfFunctions } from './text';

/*
 * Attention of the mode `fast`: the logits are products of 8-bit integers, each row of a head with a scale of its
 * own. The mean of a head's keys is subtracted from them first, which leaves the softmax as it is and the integers
 * finer (SageAttention, arXiv:2410.02367). Weights and values stay f32.
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
export interface QuantiseRun {
  readonly x: HeadView;
  readonly storage: Storage;
  readonly headSize: number;
  readonly heads: number;
  readonly rows: number;
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
  const uniforms = {
    rows,
    xHead: x.headStride / 8,
    xRow: x.rowStride / 8,
    xFirst: x.firstRow,
  };
  const flops = heads * rows * headSize;
  const quantise: Dispatch = {
    kernel: quantiseKernel(storage, headSize, mean !== undefined),
    operands: { x: x.operand, values: y.values, scales: y.scales, ...(mean && { mean }) },
    uniforms,
    groups: heads * Math.ceil(rows / rowThreads),
    flops,
  };
  if (!mean) return [quantise];
  const kernel = meanKernel(storage, headSize);
  return [{ kernel, operands: { x: x.operand, mean }, uniforms, groups: heads, flops }, quantise];
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

/** A run of attention whose q and k are in 8 bits. */
export interface FastAttentionRun extends Omit<AttentionRun, 'q' | 'k'> {
  readonly q: QuantisedHeads;
  readonly k: QuantisedHeads;
}

/** Geometries that a device can run, the best guess first; none where it has no integer dot products. */
export function fastAttentionVariants(
  compute: Pick<Compute, 'features' | 'limits'>,
): AttentionVariant[] {
  // Its tiles are integers, so that the type of the exact ones' tiles makes no difference.
  const { features, limits } = compute;
  return features.has(integerDots) ? attentionVariants({ features: new Set(), limits }) : [];
}

/** The kernel of {@link fastAttentionDispatch}; it needs the language feature {@link integerDots}. */
export const fastAttentionKernel = memoised(
  (variant: AttentionVariant, shape: AttentionShape): Kernel =>
    attentionText(variant, shape, integerLogits(variant, shape)),
);

/** As `attentionDispatch`, of rows that {@link quantiseRows} has stored. */
export function fastAttentionDispatch(
  variant: AttentionVariant,
  shape: AttentionShape,
  run: FastAttentionRun,
): Dispatch {
  const { q, k, ...rest } = run;
  const common = attentionOperands(variant, shape, rest);
  return {
    ...common,
    kernel: fastAttentionKernel(variant, shape),
    operands: {
      ...common.operands,
      q: q.values,
      qScale: q.scales,
      k: k.values,
      kScale: k.scales,
    },
  };
}

function integerLogits(variant: AttentionVariant, shape: AttentionShape): Logits {
  const { queries, keys: tile } = variant;
  const { threads, rows, keys, left, keySlice, valueSlice } = geometryOf(variant, shape.headSize);
  const right = Math.max(keySlice, valueSlice);
  const vectors = packedWidth(shape.headSize) / 4;
  const weights: Area = { name: 'left', element: 'vec4<u32>', count: left };
  const values: Area = { name: 'right', element: 'vec4<u32>', count: right };
  const fill = (
    name: string,
    area: Area,
    count: number,
    row: string,
    length: string,
    slot: string,
  ) =>
    eachUnit(
      count * 4,
      threads,
      `
        let row = unit / 4u;
        let vector = c * 4u + unit % 4u;
        let slot = unit % 4u * ${count}u + ${slot};
        ${vectors % 4 === 0 ? '' : `if (vector < ${vectors}u) `}{ ${area.name}[slot] = ${name}[(head * ${length} + ${row}) * ${vectors}u + vector]; }
        ${vectors % 4 === 0 ? '' : `if (vector >= ${vectors}u) { ${area.name}[slot] = vec4<u32>(); }`}`,
    );
  // The sum is the first addend, as an instruction that adds a dot product to a number takes it for nothing.
  const dots = (i: number, j: number) =>
    [`d${i}_${j}`, ...['x', 'y', 'z', 'w'].map((e) => `dot4I8Packed(a.${e}, b${j}.${e})`)].join(
      ' + ',
    );
  return {
    name: `fast attention ${shape.kv}→${shape.out} ${shape.headSize}, ${queries}×${tile}`,
    mode: 'fast',
    bindings: [
      { name: 'q', access: 'read', element: 'vec4<u32>' },
      { name: 'k', access: 'read', element: 'vec4<u32>' },
      { name: 'qScale', access: 'read', element: 'f32' },
      { name: 'kScale', access: 'read', element: 'f32' },
    ],
    uniforms: [],
    needs,
    directives: '',
    areas: [weights, values],
    weights,
    values,
    text: `
${lines(rows, (i) => lines(keys, (j) => `    var d${i}_${j} = 0i;`))}
    for (var c = 0u; c < ${Math.ceil(vectors / 4)}u; c++) {
      workgroupBarrier();
${fill('q', weights, queries, 'min(firstQuery + row, uniforms.rows - 1u)', 'uniforms.rows', 'row')}
${fill('k', values, tile, 'min(firstKey + row, uniforms.keys - 1u)', 'uniforms.keys', `row / ${keys}u + row % ${keys}u * ${lanes}u`)}
      workgroupBarrier();
${lines(
  4,
  (d) => `      {
${lines(keys, (j) => `        let b${j} = right[${d * tile + j * lanes}u + lane];`)}
${lines(
  rows,
  (i) => `        {
          let a = left[${d * queries + i}u + part * ${rows}u];
${lines(keys, (j) => `          d${i}_${j} = ${dots(i, j)};`)}
        }`,
)}
      }`,
)}
    }
${lines(keys, (j) => `    let k${j} = kScale[head * uniforms.keys + min(firstKey + lane * ${keys}u + ${j}u, uniforms.keys - 1u)];`)}
${lines(rows, (i) => lines(keys, (j) => `    s${i}_${j} = f32(d${i}_${j}) * k${j};`))}
${lines(rows, (i) => `    let q${i} = uniforms.scale * qScale[head * uniforms.rows + min(firstQuery + part * ${rows}u + ${i}u, uniforms.rows - 1u)];`)}`,
    factor: (i) => `q${i}`,
  };
}

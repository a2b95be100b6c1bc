import { memoised } from '../../graph';
import { type AttentionRun, attentionOperands, widest } from './attention';
import { pack, packedWidth, type QuantisedHeads, type QuantisedValues } from './attention-quantise';
import {
  type Area,
  component,
  divisionText,
  eachUnit,
  four,
  type Geometry,
  geometryOf,
  lanes,
  workgroupOf,
} from './attention-tile';
import { resultText } from './attention-wgsl';
import type { AttentionShape, AttentionVariant } from './choice';
import { type Compute, type Dispatch, fits } from './compute';
import { defineKernel, integerDots, type Kernel } from './kernel';
import { lines, range, vectorBinding } from './text';

/*
 * Attention of the mode `fast`: both products are of 8-bit integers. The weights of a tile of keys are rounded to
 * 0…255, 255 being that of its largest logit; a tile's share of the result is then scaled by what that logit is below
 * the largest so far. The values of a head have a range for each channel, from which bytes count. As weights add up to
 * 1, where a range begins is added to the result once; and as the sum is that of the rounded weights, their rounding
 * only shifts weight between keys.
 */

/** Workgroup memory of a kernel, in vectors of 16 bytes. */
interface Areas {
  /** Q [vectors][queries], for all tiles of keys. */
  readonly rows: Area;
  /** K [vectors][keys + 1], then V [keys/4][columns·16]: the next row's begins in another bank. */
  readonly operands: Area;
  /** Largest logits of the lanes [16][queries/4], then weights [keys/4][queries/4]. */
  readonly weights: Area;
  /** Largest logits of four lanes each [4][queries/4]. */
  readonly largest: Area;
  /** What belongs to a row [4][queries/4], so that it takes no registers while products are added. */
  readonly state: Area;
}

/** What belongs to a row, in order. */
const state = { factor: 0, largest: 1, decay: 2, share: 3 } as const;

/** Where a part's group of four rows has it. */
function stateOf(
  of: keyof typeof state,
  { queries }: AttentionVariant,
  { rows }: Geometry,
  g: number,
) {
  return `states[${(state[of] * queries) / 4 + g}u + part * ${rows / 4}u]`;
}

function areasOf({ queries, keys }: AttentionVariant, headSize: number, columns: number): Areas {
  const vectors = packedWidth(headSize) / 4;
  const area = (name: string, element: Area['element'], count: number): Area => ({
    name,
    element,
    count,
  });
  const valueCount = (keys / pack) * columns * lanes;
  return {
    rows: area('rows', 'vec4<u32>', vectors * queries),
    operands: area('operands', 'vec4<u32>', Math.max(vectors * (keys + 1), valueCount)),
    weights: area('weights', 'vec4<u32>', Math.max((keys * queries) / 16, 4 * queries)),
    largest: area('largestOf', 'vec4<f32>', queries),
    state: area('states', 'vec4<f32>', queries),
  };
}

type Form = readonly [queries: number, keys: number, threadRows: 4 | 8];

const tiles: readonly Form[] = [
  [64, 64, 4],
  [32, 64, 4],
  [128, 64, 8],
  [64, 64, 8],
];

/** Geometries that a device can run, the best guess first; none where it has no integer dot products. */
export function fastAttentionVariants(
  compute: Pick<Compute, 'features' | 'limits'>,
): AttentionVariant[] {
  if (!compute.features.has(integerDots)) return [];
  return tiles
    .map(([queries, keys, threadRows]): AttentionVariant => {
      return { queries, keys, threadRows, shared: 'f32' };
    })
    .filter((variant) => fits(compute, fastAttentionKernel(variant, widest)));
}

/**
 * The kernel of {@link fastAttentionDispatch}; it needs the language feature {@link integerDots}. Its tile has whole
 * packs of keys for each lane.
 *
 * @throws RangeError for a shape that adds to the logits
 */
export const fastAttentionKernel = memoised(
  (variant: AttentionVariant, shape: AttentionShape): Kernel => {
    const { queries, keys } = variant;
    const { headSize, bias } = shape;
    if (bias !== 'none') throw new RangeError('fast attention adds nothing to logits');
    const geometry = geometryOf(variant, headSize);
    const { threads, rows, columns } = geometry;
    const areas = areasOf(variant, headSize, columns);
    const vectors = packedWidth(headSize) / 4;
    return defineKernel({
      name: `fast attention →${shape.out} ${headSize}, ${queries}×${keys} by ${rows}`,
      mode: 'fast',
      bindings: [
        { name: 'q', access: 'read', element: 'vec4<u32>' },
        { name: 'k', access: 'read', element: 'vec4<u32>' },
        { name: 'qScale', access: 'read', element: 'f32' },
        { name: 'kScale', access: 'read', element: 'f32' },
        { name: 'v', access: 'read', element: 'vec4<u32>' },
        { name: 'vRange', access: 'read', element: 'vec4<f32>' },
        vectorBinding('out', 'write', shape.out),
      ],
      uniforms: ['rows', 'keys', 'scale: f32', 'outHead', 'outRow', 'outFirst'],
      threads,
      ...workgroupOf(Object.values<Area>({ ...areas })),
      subgroup: variant.subgroup,
      needs: [integerDots],
      body: `${divisionText(queries)}
${eachUnit(
  queries * vectors,
  threads,
  `
        let row = min(firstQuery + unit / ${vectors}u, uniforms.rows - 1u);
        rows[unit % ${vectors}u * ${queries}u + unit / ${vectors}u] = q[(head * uniforms.rows + row) * ${vectors}u + unit % ${vectors}u];`,
)}
${lines(rows, (i) => lines(columns, (h) => `  var o${i}_${h} = vec4<f32>();`))}
${lines(rows / 4, (g) => `  var sum${g} = vec4<f32>();`)}
  if (lane == 0u) {
${lines(
  rows / 4,
  (
    g,
  ) => `    ${stateOf('factor', variant, geometry, g)} = uniforms.scale * ${four((i) => `qScale[head * uniforms.rows + min(firstQuery + part * ${rows}u + ${4 * g + i}u, uniforms.rows - 1u)]`)};
    ${stateOf('largest', variant, geometry, g)} = vec4<f32>(-3e38);`,
)}
  }
${tileLoop(variant, shape, geometry)}
${rangeText(shape, geometry)}
${resultText(variant, shape, geometry, areas.weights, (h, levels) => `fma(${levels}, level${h}, least${h})`)}`,
    });
  },
);

/** A run of attention whose q, k and v are in 8 bits. */
export interface FastAttentionRun extends Omit<AttentionRun, 'q' | 'k' | 'v'> {
  readonly q: QuantisedHeads;
  readonly k: QuantisedHeads;
  readonly v: QuantisedValues;
}

/** As `attentionDispatch`, of what `attention-quantise.ts` has stored. */
export function fastAttentionDispatch(
  variant: AttentionVariant,
  shape: AttentionShape,
  run: FastAttentionRun,
): Dispatch {
  const { q, k, v, ...rest } = run;
  const { operands, ...common } = attentionOperands(variant, shape, rest);
  return {
    ...common,
    kernel: fastAttentionKernel(variant, shape),
    operands: {
      ...operands,
      q: q.values,
      qScale: q.scales,
      k: k.values,
      kScale: k.scales,
      v: v.values,
      vRange: v.ranges,
    },
  };
}

function tileLoop(
  variant: AttentionVariant,
  { headSize }: AttentionShape,
  geometry: Geometry,
): string {
  const { keys: tile } = variant;
  const { threads, columns, keys } = geometry;
  const vectors = packedWidth(headSize) / 4;
  const groups = headSize / 4;
  return `
  let packs = (uniforms.keys + ${pack - 1}u) / ${pack}u;
  for (var firstKey = 0u; firstKey < uniforms.keys; firstKey += ${tile}u) {
    workgroupBarrier();
${eachUnit(
  tile * vectors,
  threads,
  `
        let key = unit / ${vectors}u;
        let vector = unit % ${vectors}u;
        let row = head * uniforms.keys + min(firstKey + key, uniforms.keys - 1u);
        operands[vector * ${tile + 1}u + key / ${keys}u + key % ${keys}u * ${lanes}u] = k[row * ${vectors}u + vector];`,
)}
    workgroupBarrier();
${logitText(variant, vectors, geometry)}
${softmaxText(variant, geometry)}
${eachUnit(
  (tile / pack) * groups,
  threads,
  `
        let channels = unit % ${groups}u;
        let row = head * packs + min(firstKey / ${pack}u + unit / ${groups}u, packs - 1u);
        operands[unit / ${groups}u * ${columns * lanes}u + channels] = v[row * ${groups}u + channels];`,
)}
    workgroupBarrier();
${weightedText(variant, geometry)}
  }`;
}

/** Packs of keys in a turn of the loop over those behind the first ones. */
const turn = 4;

/** Sums of integers in the fraction of 1.5·2²³: no conversion is needed. */
function logitText(
  { queries, keys: tile }: AttentionVariant,
  vectors: number,
  { rows, keys }: Geometry,
): string {
  const dots = (i: number, j: number) =>
    [`d${i}_${j}`, ...['x', 'y', 'z', 'w'].map((e) => `dot4I8Packed(a.${e}, b${j}.${e})`)].join(
      ' + ',
    );
  return `
${lines(rows, (i) => lines(keys, (j) => `    var d${i}_${j}: i32 = 0x4B400000;`))}
${lines(
  vectors,
  (d) => `      {
${lines(keys, (j) => `        let b${j} = operands[${d * (tile + 1) + j * lanes}u + lane];`)}
${lines(
  rows,
  (i) => `        {
          let a = rows[${d * queries + i}u + part * ${rows}u];
${lines(keys, (j) => `          d${i}_${j} = ${dots(i, j)};`)}
        }`,
)}
      }`,
)}
${lines(keys, (j) => `    let k${j} = kScale[head * uniforms.keys + min(firstKey + lane * ${keys}u + ${j}u, uniforms.keys - 1u)];`)}
${lines(rows, (i) => lines(keys, (j) => `    let s${i}_${j} = (bitcast<f32>(d${i}_${j}) - 12582912.0) * k${j};`))}`;
}

/** From the logits to the tile's weights in 8 bits, in workgroup memory, and their sums. */
function softmaxText(variant: AttentionVariant, geometry: Geometry): string {
  const { queries } = variant;
  const { rows, keys } = geometry;
  const packs = keys / pack;
  const groupOf = (owner: string, g: number | string) =>
    `${owner} * ${queries / 4}u + part * ${rows / 4}u + ${g}u`;
  const most = (i: number) =>
    `${range(keys).reduce((text, j) => (text ? `max(${text}, s${i}_${j})` : `s${i}_${j}`), '')} * ${component('factor', i)}`;
  // The lowest byte of each number's bits is its weight. Shifted by a byte or more, nothing is left of the exponent;
  // the last summand takes away that of the first.
  const magic = (j: number) => (j % pack === pack - 1 ? '8388789.0' : '8388608.0');
  const word = (i: number, b: number) =>
    `(${[3, 2, 1]
      .map((e) => `(bitcast<u32>(w${i}_${b * pack + e}) << ${8 * e}u)`)
      .join(' + ')} + bitcast<u32>(w${i}_${b * pack})) & mask${b}`;
  const count = (i: number) =>
    `bitcast<f32>(0x4B000000u + ${range(packs)
      .map((b) => `dot4U8Packed(word${i}_${b}, 0x01010101u)`)
      .join(' + ')}) - 8388608.0`;
  return `
${lines(
  rows / 4,
  (g) => `    let factor${g} = ${stateOf('factor', variant, geometry, g)};
    let largest${g} = ${stateOf('largest', variant, geometry, g)};`,
)}
${lines(rows / 4, (g) => `    weights[${groupOf('lane', g)}] = bitcast<vec4<u32>>(${four((i) => most(4 * g + i))});`)}
    workgroupBarrier();
    if (lane < ${rows}u) {
      // Of four lanes each, so that all have few to read.
      let first = ${groupOf(`lane / ${rows / 4}u * 4u`, 0)} + lane % ${rows / 4}u;
      var most = bitcast<vec4<f32>>(weights[first]);
${lines(3, (other) => `      most = max(most, bitcast<vec4<f32>>(weights[first + ${((other + 1) * queries) / 4}u]));`)}
      largestOf[lane / ${rows / 4}u * ${queries / 4}u + part * ${rows / 4}u + lane % ${rows / 4}u] = most;
    }
    workgroupBarrier();
${lines(
  rows / 4,
  (g) => `    var most${g} = largestOf[${groupOf('0u', g)}];
${lines(3, (other) => `    most${g} = max(most${g}, largestOf[${groupOf(`${other + 1}u`, g)}]);`)}
    let nextLargest${g} = max(largest${g}, most${g});
    let decay${g} = exp2(largest${g} - nextLargest${g});
    let share${g} = exp2(most${g} - nextLargest${g});
    // The largest weight is 255.
    most${g} -= ${Math.log2(255)};`,
)}
    if (lane == 0u) {
${lines(
  rows / 4,
  (g) => `      ${stateOf('largest', variant, geometry, g)} = nextLargest${g};
      ${stateOf('decay', variant, geometry, g)} = decay${g};
      ${stateOf('share', variant, geometry, g)} = share${g};`,
)}
    }
${lines(
  packs,
  (
    b,
  ) => `    let left${b} = uniforms.keys - min(uniforms.keys, firstKey + lane * ${keys}u + ${b * pack}u);
    let mask${b} = select((1u << (8u * min(left${b}, 3u))) - 1u, 0xffffffffu, left${b} > 3u);`,
)}
${lines(rows, (i) => lines(keys, (j) => `    let w${i}_${j} = exp2(fma(s${i}_${j}, ${component('factor', i)}, -${component('most', i)})) + ${magic(j)};`))}
${lines(rows, (i) => lines(packs, (b) => `    let word${i}_${b} = ${word(i, b)};`))}
${lines(rows / 4, (g) => `    sum${g} = fma(sum${g}, decay${g}, share${g} * ${four((i) => count(4 * g + i))});`)}
${lines(packs, (b) =>
  lines(
    rows / 4,
    (g) =>
      `    weights[${groupOf(`(lane * ${packs}u + ${b}u)`, g)}] = vec4<u32>(${range(4)
        .map((i) => `word${4 * g + i}_${b}`)
        .join(', ')});`,
  ),
)}`;
}

/** Adds the values of the tile with their weights, as sums of integers in the fraction of 2²³. */
function weightedText(variant: AttentionVariant, geometry: Geometry): string {
  const { queries, keys: tile } = variant;
  const { rows, columns } = geometry;
  const across = range(4 * columns);
  const element = (c: number) => `v${c >> 2}.${'xyzw'[c & 3]}`;
  const sums = (i: number, h: number) =>
    `bitcast<vec4<f32>>(vec4<u32>(${range(4)
      .map((e) => `a${i}_${4 * h + e}`)
      .join(', ')}))`;
  const packs = lines(
    turn,
    (p) => `      {
${lines(columns, (h) => `        let v${h} = operands[right + ${(p * columns + h) * lanes}u];`)}
${lines(rows / 4, (g) => `        let p${g} = weights[left + ${(p * queries) / 4 + g}u];`)}
${lines(rows, (i) => across.map((c) => `        a${i}_${c} = a${i}_${c} + dot4U8Packed(${component('p', i)}, ${element(c)});`).join('\n'))}
      }`,
  );
  return `
${lines(rows, (i) => across.map((c) => `    var a${i}_${c} = 0x4B000000u;`).join('\n'))}
    var left = part * ${rows / 4}u;
    var right = lane;
    // Written out the first time, so that the sums begin with a constant.
${packs}
    for (var first = ${turn}u; first < ${tile / pack}u; first += ${turn}u) {
      left += ${(turn * queries) / 4}u;
      right += ${turn * columns * lanes}u;
${packs}
    }
${lines(
  rows / 4,
  (g) => `    let decayOf${g} = ${stateOf('decay', variant, geometry, g)};
    let shareOf${g} = ${stateOf('share', variant, geometry, g)};`,
)}
${lines(
  rows,
  (i) => `    {
      let share = vec4<f32>(${component('shareOf', i)});
      let decay = vec4<f32>(${component('decayOf', i)});
      let none = -8388608.0 * share;
${lines(columns, (h) => `      o${i}_${h} = fma(${sums(i, h)}, share, fma(o${i}_${h}, decay, none));`)}
    }`,
)}`;
}

/** Where the ranges of a lane's channels begin, and the size of their levels. */
function rangeText({ headSize }: AttentionShape, { columns }: Geometry): string {
  const groups = headSize / 4;
  return lines(
    columns,
    (h) => `  let channel${h} = head * ${2 * groups}u + min(lane + ${h * lanes}u, ${groups - 1}u);
  let least${h} = vRange[channel${h}];
  let level${h} = vRange[channel${h} + ${groups}u];`,
  );
}

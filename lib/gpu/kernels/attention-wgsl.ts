import {
  type Area,
  component,
  divisionText,
  type Fill,
  fetch,
  fetchedVectors,
  fillNow,
  four,
  type Geometry,
  geometryOf,
  lanes,
  place,
  read,
  rowsBinding,
  slice,
  storeFetched,
  workgroupOf,
  write,
} from './attention-tile';
import type { AttentionShape, AttentionVariant } from './choice';
import { defineKernel, type Kernel, type KernelBinding, type KernelMode } from './kernel';
import { lines, range, store4, vectorBinding } from './text';

/** How the logits of a tile are made, and where operands lie in workgroup memory: what differs between kernels. */
export interface Logits {
  readonly name: string;
  readonly mode: KernelMode;
  readonly bindings: readonly KernelBinding[];
  readonly uniforms: readonly string[];
  readonly needs: readonly string[];
  readonly directives: string;
  readonly areas: readonly Area[];
  /** Largest values of the lanes, weights of a slice of keys. */
  readonly weights: Area;
  readonly values: Area;
  /** Text that leaves `s0_0`, `s0_1` … with what {@link factor} makes the logits of. */
  readonly text: string;
  /** What the first of {@link text} loads of a tile, where that is loaded ahead. */
  readonly ahead?: (firstKey: string) => readonly Fill[];
  /** What makes logits of row `i` in units of log 2: a factor that is not negative. */
  readonly factor: (i: number) => string;
}

/**
 * The kernel of attention with given logits. Per tile of keys: logits, softmax so far, results so far. A thread's
 * rows of logits are its rows of results, so that what belongs to a row stays where it is.
 */
export function attentionText(
  variant: AttentionVariant,
  shape: AttentionShape,
  logits: Logits,
): Kernel {
  const { bias } = shape;
  const { queries, keys } = variant;
  const geometry = geometryOf(variant, shape.headSize);
  const { threads, rows, columns } = geometry;
  const tile = tileText(variant, shape, geometry, logits);
  return defineKernel({
    name: logits.name,
    mode: logits.mode,
    bindings: [
      ...logits.bindings,
      rowsBinding('v', shape.kv),
      vectorBinding('out', 'write', shape.out),
      ...(bias === 'full' ? [{ name: 'bias', access: 'read', element: 'f32' } as const] : []),
    ],
    uniforms: [
      'rows',
      'keys',
      'scale: f32',
      ...logits.uniforms,
      ...['v', 'out'].flatMap((name) => [`${name}Head`, `${name}Row`, `${name}First`]),
      ...(bias === 'last' ? ['lastBias: f32'] : []),
      ...(bias === 'full' ? ['biasHead'] : []),
    ],
    threads,
    ...workgroupOf(logits.areas),
    subgroup: variant.subgroup,
    needs: logits.needs,
    directives: logits.directives,
    body: `${divisionText(queries)}
${lines(rows, (i) => lines(columns, (h) => `  var o${i}_${h} = vec4<f32>();`))}
${lines(rows / 4, (g) => `  var largest${g} = vec4<f32>(-3e38);\n  var sum${g} = vec4<f32>();`)}
${aheadText(shape, geometry, logits)}
  for (var firstKey = 0u; firstKey < uniforms.keys; firstKey += ${keys}u) {
${tile}
  }
${resultText(variant, shape, geometry, logits.weights)}`,
  });
}

/** Registers for what is loaded ahead, and the first of it. */
function aheadText(shape: AttentionShape, geometry: Geometry, { ahead, values }: Logits): string {
  if (!ahead) return '';
  const { threads } = geometry;
  const first = ahead('0u');
  const count = Math.max(
    fetchedVectors(first, threads),
    fetchedVectors([valuesFill(shape, geometry, values, '0u')], threads),
  );
  return `${lines(count, (i) => `  var ahead${i} = vec4<u32>();`)}\n${fetch(first, threads)}`;
}

function tileText(
  variant: AttentionVariant,
  shape: AttentionShape,
  geometry: Geometry,
  logits: Logits,
): string {
  const { rows, keys } = geometry;
  const { weights, factor } = logits;
  // A bias is added to logits; without one the factors cost nothing in the sum of the exponent.
  const biased = shape.bias !== 'none';
  const each = (line: (i: number, j: number) => string) =>
    lines(rows, (i) => lines(keys, (j) => line(i, j)));
  const own = (j: number) => `firstKey + lane * ${keys}u + ${j}u`;
  const most = (i: number) =>
    range(keys)
      .reduce((text, j) => (text ? `max(${text}, s${i}_${j})` : `s${i}_${j}`), '')
      .concat(biased ? '' : ` * ${factor(i)}`);
  const power = (i: number, j: number) =>
    biased
      ? `s${i}_${j} - ${component('next', i)}`
      : `fma(s${i}_${j}, ${factor(i)}, -${component('next', i)})`;
  const total = (i: number) =>
    range(keys)
      .map((j) => `s${i}_${j}`)
      .join(' + ');
  const groupOf = (owner: string, g: number) =>
    `${owner} * ${variant.queries / 4}u + part * ${rows / 4}u + ${g}u`;
  return `
${each((i, j) => `    var s${i}_${j} = 0.0;`)}
${logits.text}
${biased ? `${each((i, j) => `    s${i}_${j} *= ${factor(i)};`)}\n` : ''}${biasText(shape, geometry)}
    workgroupBarrier();
${lines(
  rows / 4,
  (g) =>
    `    ${write(
      weights,
      groupOf('lane', g),
      four((i) => most(4 * g + i)),
    )}`,
)}
    workgroupBarrier();
    if (lane < ${rows}u) {
      // Of four lanes each, in the place of the first one's, so that all have few to read.
      let place = ${groupOf(`lane / ${rows / 4}u * 4u`, 0)} + lane % ${rows / 4}u;
      var most = ${read(weights, 'place')};
${lines(3, (other) => `      most = max(most, ${read(weights, `place + ${((other + 1) * variant.queries) / 4}u`)});`)}
      ${write(weights, 'place', 'most')}
    }
    workgroupBarrier();
${lines(
  rows / 4,
  (g) => `    var next${g} = largest${g};
${lines(lanes / 4, (other) => `    next${g} = max(next${g}, ${read(weights, groupOf(`${4 * other}u`, g))});`)}
    let decay${g} = exp2(largest${g} - next${g});
    largest${g} = next${g};`,
)}
    // Keys beyond the last one repeat it: the maxima are right, and they have no weight.
${lines(
  keys,
  (j) => `    {
      let isKey = ${own(j)} < uniforms.keys;
${lines(rows, (i) => `      s${i}_${j} = select(0.0, exp2(${power(i, j)}), isKey);`)}
    }`,
)}
${lines(rows / 4, (g) => `    sum${g} = sum${g} * decay${g} + ${four((i) => total(4 * g + i))};`)}
${lines(rows, (i) => lines(geometry.columns, (h) => `    o${i}_${h} *= ${component('decay', i)};`))}
${weightedText(variant, shape, geometry, logits)}`;
}

function biasText({ bias }: AttentionShape, { rows, keys }: Geometry): string {
  if (bias === 'last') {
    return lines(
      keys,
      (j) => `    if (firstKey + lane * ${keys}u + ${j}u == uniforms.keys - 1u) {
${lines(rows, (i) => `      s${i}_${j} += uniforms.lastBias;`)}
    }`,
    );
  }
  if (bias === 'none') return '';
  const key = (j: number) => `min(firstKey + lane * ${keys}u + ${j}u, uniforms.keys - 1u)`;
  return lines(
    rows,
    (i) => `    {
      let row = min(firstQuery + part * ${rows}u + ${i}u, uniforms.rows - 1u);
      let start = head * uniforms.biasHead + row * uniforms.keys;
${lines(keys, (j) => `      s${i}_${j} += ${Math.LOG2E} * bias[start + ${key(j)}];`)}
    }`,
  );
}

/** Slice `c` of the values of a tile. */
export function valuesFill(
  { headSize, kv }: AttentionShape,
  { columns }: Geometry,
  area: Area,
  c: string,
): Fill {
  const units = headSize / 8;
  const row = place('v', `min(firstKey + ${c} * ${slice}u + key, uniforms.keys - 1u)`);
  return {
    name: 'v',
    storage: kv,
    area,
    count: slice * units,
    setup: `
        let key = unit / ${units}u;
        let channel = unit % ${units}u;
        let slot = key * ${lanes * columns}u + channel * 2u;`,
    index: `${row} + channel`,
    slots: ['slot', 'slot + 1u'],
  };
}

/** Adds the values of the tile with their weights, in slices of the keys. */
function weightedText(
  variant: AttentionVariant,
  shape: AttentionShape,
  geometry: Geometry,
  { weights, values, ahead }: Logits,
): string {
  const { queries, keys: tile } = variant;
  const { rows, keys, columns, threads, whole } = geometry;
  const slices = tile / slice;
  const of = (c: string) => [valuesFill(shape, geometry, values, c)];
  const fills = ahead
    ? `${storeFetched(of('c'), threads)}
      if (c < ${slices - 1}u) {
${fetch(of('(c + 1u)'), threads)}
      } else {
${fetch(ahead(`(firstKey + ${tile}u)`), threads)}
      }`
    : fillNow(of('c'), threads);
  const owners = slice / keys;
  const groupOf = (key: string, g: number) =>
    `(${key}) * ${queries / 4}u + part * ${rows / 4}u + ${g}u`;
  const store = (firstKey: string) =>
    lines(keys, (j) =>
      lines(
        rows / 4,
        (g) =>
          `        ${write(
            weights,
            groupOf(`${firstKey} + ${j}u`, g),
            four((i) => `s${4 * g + i}_${j}`),
          )}`,
      ),
    );
  const ofSlice = `
      if (lane / ${owners}u == c) {
${store(`lane % ${owners}u * ${keys}u`)}
      }`;
  return `${whole ? `\n    workgroupBarrier();\n${store(`lane * ${keys}u`)}` : ''}
    for (var c = 0u; c < ${slices}u; c++) {
      workgroupBarrier();${whole ? '' : ofSlice}
${fills}
      workgroupBarrier();
${lines(
  slice,
  (key) => `      {
${lines(columns, (h) => `        let v${h} = ${read(values, `${(key * columns + h) * lanes}u + lane`)};`)}
${lines(rows / 4, (g) => `        let p${g} = ${read(weights, groupOf(whole ? `c * ${slice}u + ${key}u` : `${key}u`, g))};`)}
${lines(rows, (i) => lines(columns, (h) => `        o${i}_${h} = fma(vec4<f32>(${component('p', i)}), v${h}, o${i}_${h});`))}
      }`,
)}
    }`;
}

/**
 * Divides the results `o0_0`, `o0_1` … by the sums of the weights, `sum0` …, and stores them.
 *
 * @param weights takes the sums of the lanes
 * @param resultOf makes of a quotient the result of the group of channels `h` of the lane
 */
export function resultText(
  { queries }: AttentionVariant,
  shape: AttentionShape,
  { rows, columns }: Geometry,
  weights: Area,
  resultOf: (h: number, quotient: string) => string = (_, quotient) => quotient,
): string {
  const units = shape.headSize / 4;
  const groupOf = (owner: string, g: number) =>
    `${owner} * ${queries / 4}u + part * ${rows / 4}u + ${g}u`;
  const guarded = (h: number, text: string) =>
    (h + 1) * lanes > units ? `if (lane < ${units - h * lanes}u) { ${text} }` : text;
  return `
  workgroupBarrier();
${lines(rows / 4, (g) => `  ${write(weights, groupOf('lane', g), `sum${g}`)}`)}
  workgroupBarrier();
${lines(
  rows / 4,
  (g) => `  var total${g} = vec4<f32>();
  for (var other = 0u; other < ${lanes}u; other++) {
    total${g} += ${read(weights, groupOf('other', g))};
  }`,
)}
${lines(
  rows,
  (i) => `  {
    let row = firstQuery + part * ${rows}u + ${i}u;
    let start = (${place('out', 'row')}) * 2u + lane;
    if (row < uniforms.rows) {
${lines(columns, (h) => `      ${guarded(h, store4('out', shape.out, `start + ${h * lanes}u`, resultOf(h, `o${i}_${h} / ${component('total', i)}`)))}`)}
    }
  }`,
)}`;
}

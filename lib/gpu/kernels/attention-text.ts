import type { AttentionShape, AttentionVariant } from './attention';
import { defineKernel, type Kernel, type KernelBinding, type Storage } from './kernel';
import { halfFunctions, store4, vectorBinding } from './text';

/** Channels of the largest head: its results lie in registers. */
export const largestHead = 128;

/** Threads that share a row; each has every 16th group of four channels. */
const lanes = 16;

/** Channels, and keys, that lie in workgroup memory at a time. */
const slice = 16;

/** Whether there is a kernel for heads of this size. */
export function hasAttention(headSize: number): boolean {
  return headSize >= 8 && headSize <= largestHead && headSize % 8 === 0;
}

/** How a workgroup is divided. */
export interface Geometry {
  readonly threads: number;
  /** Rows and keys of a thread. */
  readonly rows: number;
  readonly keys: number;
  /** Groups of four channels of a thread. */
  readonly columns: number;
  /** `vec4`s of the two areas of workgroup memory. */
  readonly left: number;
  readonly right: number;
  readonly workgroupBytes: number;
}

/**
 * The left area has a slice of Q [4][queries], the maxima or sums of the lanes [16][queries/4], or a slice of the
 * weights [16][queries/4]; the right one has a slice of K [4][keys] or of V [16][columns·16].
 */
export function geometryOf({ queries, keys }: AttentionVariant, headSize: number): Geometry {
  const rows = queries >= 64 ? 8 : 4;
  const columns = Math.ceil(headSize / 64);
  const left = 4 * queries;
  const right = Math.max(4 * keys, slice * lanes * columns);
  return {
    threads: (queries / rows) * lanes,
    rows,
    keys: keys / lanes,
    columns,
    left,
    right,
    workgroupBytes: 16 * (left + right),
  };
}

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index);
const lines = (count: number, line: (index: number) => string) => upTo(count).map(line).join('\n');

export function makeKernel(variant: AttentionVariant, shape: AttentionShape): Kernel {
  const { headSize, bias } = shape;
  if (!hasAttention(headSize)) throw new RangeError(`no attention for heads of ${headSize}`);
  const { queries, keys } = variant;
  const geometry = geometryOf(variant, headSize);
  const { threads, rows, left, right, workgroupBytes } = geometry;
  const bindings: KernelBinding[] = [
    rowsBinding('q', shape.q),
    rowsBinding('k', shape.kv),
    rowsBinding('v', shape.kv),
    vectorBinding('out', 'write', shape.out),
  ];
  if (bias === 'full') bindings.push({ name: 'bias', access: 'read', element: 'f32' });
  return defineKernel({
    name: `attention ${shape.q},${shape.kv}→${shape.out} ${headSize} ${queries}×${keys}`,
    mode: 'exact',
    bindings,
    uniforms: [
      'rows',
      'keys',
      'scale: f32',
      ...['q', 'k', 'v', 'out'].flatMap((name) => [`${name}Head`, `${name}Row`, `${name}First`]),
      ...(bias === 'last' ? ['lastBias: f32'] : []),
      ...(bias === 'full' ? ['biasHead'] : []),
    ],
    threads,
    workgroupBytes,
    declarations: `
var<workgroup> left: array<vec4<f32>, ${left}>;
var<workgroup> right: array<vec4<f32>, ${right}>;
${halfFunctions}`,
    body: `
  let queryTiles = (uniforms.rows + ${queries - 1}u) / ${queries}u;
  let head = group / queryTiles;
  let firstQuery = group % queryTiles * ${queries}u;
  let lane = thread % ${lanes}u;
  let part = thread / ${lanes}u;
${lines(rows, (i) => lines(geometry.columns, (h) => `  var o${i}_${h} = vec4<f32>();`))}
${lines(rows / 4, (g) => `  var largest${g} = vec4<f32>(-3e38);\n  var sum${g} = vec4<f32>();`)}
  for (var firstKey = 0u; firstKey < uniforms.keys; firstKey += ${keys}u) {
${tileText(variant, shape, geometry)}
  }
${resultText(variant, shape, geometry)}`,
  });
}

/** A buffer that is read eight elements at a time. */
function rowsBinding(name: string, storage: Storage): KernelBinding {
  return { name, access: 'read', element: storage === 'f32' ? 'vec4<f32>' : 'vec4<u32>' };
}

/** Two `vec4`s from eight elements; `index` counts groups of eight. */
function load8(name: string, storage: Storage, index: string, to: readonly [string, string]) {
  return storage === 'f32'
    ? `${to[0]} = ${name}[(${index}) * 2u];
        ${to[1]} = ${name}[(${index}) * 2u + 1u];`
    : `let words = ${name}[${index}];
        ${to[0]} = unpackHalf4(words.xy);
        ${to[1]} = unpackHalf4(words.zw);`;
}

/** Component `i` of `name0`, `name1` …: vectors of four rows. */
const component = (name: string, i: number) => `${name}${i >> 2}.${'xyzw'[i & 3]}`;

/** One tile of keys: logits, softmax so far, results so far. */
function tileText(variant: AttentionVariant, shape: AttentionShape, geometry: Geometry): string {
  const { rows, keys } = geometry;
  const each = (line: (i: number, j: number) => string) =>
    lines(rows, (i) => lines(keys, (j) => line(i, j)));
  const name = (i: number, j: number) => `s${i}_${j}`;
  return `
${each((i, j) => `    var ${name(i, j)} = 0.0;`)}
${logitsText(variant, shape, geometry)}
${each((i, j) => `    ${name(i, j)} *= uniforms.scale;`)}
${biasText(variant, shape, geometry)}
    // Logits have a bound, so that keys beyond the last one have no weight beside them.
${lines(
  keys,
  (j) => `    if (firstKey + lane * ${keys}u + ${j}u < uniforms.keys) {
${lines(rows, (i) => `      ${name(i, j)} = max(${name(i, j)}, -1e38);`)}
    } else {
${lines(rows, (i) => `      ${name(i, j)} = -3e38;`)}
    }`,
)}
    workgroupBarrier();
${lines(rows / 4, (g) => {
  const most = (i: number) =>
    upTo(keys).reduce((text, j) => (text ? `max(${text}, ${name(i, j)})` : name(i, j)), '');
  return `    left[lane * ${variant.queries / 4}u + part * ${rows / 4}u + ${g}u] = vec4<f32>(${upTo(
    4,
  )
    .map((i) => most(4 * g + i))
    .join(', ')});`;
})}
    workgroupBarrier();
${lines(
  rows / 4,
  (g) => `    var next${g} = largest${g};
    for (var other = 0u; other < ${lanes}u; other++) {
      next${g} = max(next${g}, left[other * ${variant.queries / 4}u + part * ${rows / 4}u + ${g}u]);
    }
    let decay${g} = exp2(largest${g} - next${g});
    largest${g} = next${g};`,
)}
${each((i, j) => `    ${name(i, j)} = exp2(${name(i, j)} - ${component('next', i)});`)}
${lines(rows / 4, (g) => {
  const total = (i: number) =>
    upTo(keys)
      .map((j) => name(i, j))
      .join(' + ');
  return `    sum${g} = sum${g} * decay${g} + vec4<f32>(${upTo(4)
    .map((i) => total(4 * g + i))
    .join(', ')});`;
})}
${lines(rows, (i) => lines(geometry.columns, (h) => `    o${i}_${h} *= ${component('decay', i)};`))}
${weightedText(variant, shape, geometry)}`;
}

/** Products of the rows with the keys of the tile, in slices of the channels. */
function logitsText(
  { queries, keys: tile }: AttentionVariant,
  shape: AttentionShape,
  geometry: Geometry,
) {
  const { rows, keys, threads } = geometry;
  const { headSize } = shape;
  const fill = (
    name: string,
    storage: Storage,
    area: string,
    count: number,
    index: string,
    slot: string,
  ) =>
    eachUnit(
      count * 2,
      threads,
      `
        let row = unit / 2u;
        let half = unit % 2u;
        let slot = half * ${2 * count}u + ${slot};
        let channel = c * 2u + half;
        ${headSize % slice === 0 ? '' : `if (channel < ${headSize / 8}u) {`}
        ${load8(name, storage, `${index} + channel`, [`${area}[slot]`, `${area}[slot + ${count}u]`])}
        ${headSize % slice === 0 ? '' : `} else { ${area}[slot] = vec4<f32>(); ${area}[slot + ${count}u] = vec4<f32>(); }`}`,
    );
  return `
    for (var c = 0u; c < ${Math.ceil(headSize / slice)}u; c++) {
      workgroupBarrier();
${fill('q', shape.q, 'left', queries, place('q', 'min(firstQuery + row, uniforms.rows - 1u)'), 'row')}
${fill('k', shape.kv, 'right', tile, place('k', 'min(firstKey + row, uniforms.keys - 1u)'), `row / ${keys}u + row % ${keys}u * ${lanes}u`)}
      workgroupBarrier();
      for (var d = 0u; d < 4u; d++) {
${lines(keys, (j) => `        let b${j} = right[d * ${tile}u + ${j * lanes}u + lane];`)}
${lines(
  rows,
  (i) => `        let a${i} = left[d * ${queries}u + part * ${rows}u + ${i}u];
${lines(keys, (j) =>
  ['x', 'y', 'z', 'w']
    .reduce((text, e) => `fma(a${i}.${e}, b${j}.${e}, ${text})`, `s${i}_${j}`)
    .replace(/^/, `        s${i}_${j} = `)
    .concat(';'),
)}`,
)}
      }
    }`;
}

/** Where a row of a head begins, in groups of eight elements. */
function place(name: string, row: string): string {
  return `head * uniforms.${name}Head + (uniforms.${name}First + ${row}) * uniforms.${name}Row`;
}

/** Gives `count` units of work to the threads; the text has `unit`. */
function eachUnit(count: number, threads: number, text: string): string {
  return lines(Math.ceil(count / threads), (turn) => {
    const partial = (turn + 1) * threads > count;
    return `      ${partial ? `if (thread < ${count - turn * threads}u) ` : ''}{
        let unit = thread + ${turn * threads}u;${text}
      }`;
  });
}

function biasText(_: AttentionVariant, { bias }: AttentionShape, { rows, keys }: Geometry): string {
  if (bias === 'last') {
    return lines(
      keys,
      (j) => `    if (firstKey + lane * ${keys}u + ${j}u == uniforms.keys - 1u) {
${lines(rows, (i) => `      s${i}_${j} += uniforms.lastBias;`)}
    }`,
    );
  }
  if (bias === 'none') return '';
  return lines(
    rows,
    (i) => `    {
      let row = min(firstQuery + part * ${rows}u + ${i}u, uniforms.rows - 1u);
      let start = head * uniforms.biasHead + row * uniforms.keys;
${lines(keys, (j) => `      s${i}_${j} += ${Math.LOG2E} * bias[start + min(firstKey + lane * ${keys}u + ${j}u, uniforms.keys - 1u)];`)}
    }`,
  );
}

/** Adds the values of the tile with their weights, in slices of the keys. */
function weightedText(
  { queries, keys: tile }: AttentionVariant,
  shape: AttentionShape,
  geometry: Geometry,
): string {
  const { rows, keys, columns, threads } = geometry;
  const units = shape.headSize / 8;
  const value = load8(
    'v',
    shape.kv,
    `${place('v', 'min(firstKey + c * 16u + key, uniforms.keys - 1u)')} + channel`,
    ['right[slot]', 'right[slot + 1u]'],
  );
  const owners = slice / keys;
  return `
    for (var c = 0u; c < ${tile / slice}u; c++) {
      workgroupBarrier();
      if (lane / ${owners}u == c) {
${lines(keys, (j) =>
  lines(
    rows / 4,
    (g) =>
      `        left[(lane % ${owners}u * ${keys}u + ${j}u) * ${queries / 4}u + part * ${rows / 4}u + ${g}u] = vec4<f32>(${upTo(
        4,
      )
        .map((i) => `s${4 * g + i}_${j}`)
        .join(', ')});`,
  ),
)}
      }
${eachUnit(
  slice * units,
  threads,
  `
        let key = unit / ${units}u;
        let channel = unit % ${units}u;
        let slot = key * ${lanes * columns}u + channel * 2u;
        ${value}`,
)}
      workgroupBarrier();
      for (var key = 0u; key < ${slice}u; key++) {
${lines(columns, (h) => `        let v${h} = right[key * ${lanes * columns}u + ${h * lanes}u + lane];`)}
${lines(rows / 4, (g) => `        let p${g} = left[key * ${queries / 4}u + part * ${rows / 4}u + ${g}u];`)}
${lines(rows, (i) => lines(columns, (h) => `        o${i}_${h} = fma(vec4<f32>(${component('p', i)}), v${h}, o${i}_${h});`))}
      }
    }`;
}

/** Divides by the sums of the weights and stores. */
function resultText(
  { queries }: AttentionVariant,
  shape: AttentionShape,
  { rows, columns }: Geometry,
): string {
  const units = shape.headSize / 4;
  return `
  workgroupBarrier();
${lines(rows / 4, (g) => `  left[lane * ${queries / 4}u + part * ${rows / 4}u + ${g}u] = sum${g};`)}
  workgroupBarrier();
${lines(
  rows / 4,
  (g) => `  var total${g} = vec4<f32>();
  for (var other = 0u; other < ${lanes}u; other++) {
    total${g} += left[other * ${queries / 4}u + part * ${rows / 4}u + ${g}u];
  }`,
)}
${lines(
  rows,
  (i) => `  {
    let row = firstQuery + part * ${rows}u + ${i}u;
    let start = (${place('out', 'row')}) * 2u + lane;
    if (row < uniforms.rows) {
${lines(columns, (h) => `      ${(h + 1) * lanes > units ? `if (lane < ${units - h * lanes}u) ` : ''}{ ${store4('out', shape.out, `start + ${h * lanes}u`, `o${i}_${h} / ${component('total', i)}`)} }`)}
    }
  }`,
)}`;
}

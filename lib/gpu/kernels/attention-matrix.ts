import { memoised } from '../../graph';
import { type AttentionRun, type AttentionShape, dispatchOf } from './attention';
import { eachUnit, largestHead, lines, place, upTo } from './attention-tile';
import { type Compute, type Dispatch, fits } from './compute';
import { defineKernel, type Kernel, type KernelBinding } from './kernel';
import { deviceMatrices, matrixText, type SubgroupMatrices, typesOf } from './linear-matrix';
import { halfFunctions, store4, vectorBinding } from './text';

/*
 * Attention of the mode `matrix`: both products on the GPU's matrix units, f16 products and f32 sums. A subgroup has
 * whole rows. Nothing can be done to a row of a matrix, so logits pass through workgroup memory to the threads that
 * make weights of them; and results stay relative to an older maximum of the row as long as f16 holds the weights
 * (as in FlashAttention-4): they are scaled, through workgroup memory as well, where a tile exceeds it.
 */

/** Geometry of a kernel: a workgroup handles `queries` rows, `keys` keys at a time. */
export interface MatrixAttentionVariant extends SubgroupMatrices {
  readonly queries: number;
  readonly keys: number;
  /** Parts of the rows, each of one subgroup. */
  readonly parts: number;
  /**
   * How tiles of K and V get to the products: through workgroup memory in words or in matrices, a tile of K ahead in
   * matrices, or as matrices from storage by each subgroup.
   */
  readonly source: 'words' | 'matrices' | 'ahead' | 'storage';
}

type Tile = readonly [
  source: MatrixAttentionVariant['source'],
  queries: number,
  keys: number,
  parts: number,
];

const tiles: readonly Tile[] = [
  ['ahead', 64, 32, 4],
  ['ahead', 128, 32, 8],
  ['ahead', 128, 32, 4],
  ['ahead', 64, 32, 2],
  ['ahead', 128, 16, 8],
  ['matrices', 64, 32, 4],
  ['matrices', 128, 32, 8],
  ['matrices', 128, 32, 4],
  ['matrices', 64, 32, 2],
  ['matrices', 128, 16, 8],
  ['matrices', 32, 32, 2],
  ['words', 64, 32, 4],
  ['words', 128, 32, 8],
  ['words', 128, 32, 4],
  ['words', 64, 32, 2],
  ['words', 128, 16, 8],
  ['words', 32, 32, 2],
  ['storage', 64, 32, 4],
  ['storage', 64, 64, 4],
  ['storage', 128, 32, 8],
  ['storage', 64, 32, 2],
  ['storage', 32, 32, 2],
  ['storage', 32, 32, 1],
];

/** Geometries that a device can run, the best guess first; none where it has no such matrices. */
export function matrixAttentionVariants(
  compute: Pick<Compute, 'features' | 'limits' | 'matrices' | 'subgroupSizes'>,
): MatrixAttentionVariant[] {
  return deviceMatrices(compute)
    .flatMap((matrices) =>
      tiles.map(([source, queries, keys, parts]): MatrixAttentionVariant => {
        return { ...matrices, queries, keys, parts, source };
      }),
    )
    .filter(
      (variant) =>
        hasMatrixAttention(variant, widest) &&
        fits(compute, matrixAttentionKernel(variant, widest)),
    );
}

const widest: AttentionShape = {
  headSize: largestHead,
  q: 'f16',
  kv: 'f16',
  out: 'f16',
  bias: 'none',
};

/** Whether a variant computes a shape: heads of whole matrices in f16, without a bias. */
export function hasMatrixAttention(
  variant: MatrixAttentionVariant,
  { headSize, q, kv, bias }: AttentionShape,
): boolean {
  const { queries, keys, parts, m, n, k } = variant;
  const { lanes, own, share } = geometryOf(variant);
  return (
    q === 'f16' &&
    kv === 'f16' &&
    bias === 'none' &&
    [queries / parts / m, keys / n, keys / k, headSize / keys, lanes, own, share / 4].every(
      Number.isInteger,
    )
  );
}

/** Numbers that a thread of a subgroup adds to, for the widest head. */
export function matrixAttentionResults({
  queries,
  parts,
  subgroupSize,
}: MatrixAttentionVariant): number {
  return (queries * largestHead) / parts / subgroupSize;
}

/** How the threads share the rows of logits and of results. */
function geometryOf({ queries, keys, parts, subgroupSize, m }: MatrixAttentionVariant) {
  const threads = subgroupSize * parts;
  const lanes = Math.max(1, threads / queries);
  return {
    threads,
    /** Threads that share a row. */
    lanes,
    /** Rows of a thread. */
    own: Math.max(1, queries / threads),
    /** Keys of a thread in each of its rows. */
    share: keys / lanes,
    /** Matrices of a part, one below the other. */
    blocks: queries / parts / m,
    // The elements beyond a row keep rows apart in the banks of the memory.
    sumStride: keys + 4,
    weightStride: keys + 8,
  };
}

/** Above the reference of a row, in powers of two: the largest weight of a tile, and of the tile that sets it. */
const [mostAbove, setAbove] = [15, 7];

/**
 * The kernel of a variant for a shape.
 *
 * @throws RangeError for a shape that it does not compute
 */
export const matrixAttentionKernel = memoised(
  (variant: MatrixAttentionVariant, shape: AttentionShape): Kernel => {
    if (!hasMatrixAttention(variant, shape)) {
      throw new RangeError(`there is no matrix attention for heads of ${shape.headSize}`);
    }
    const { queries, keys, parts, m, n, k, source } = variant;
    const { headSize, out } = shape;
    const { threads, sumStride, weightStride } = geometryOf(variant);
    const staged = source !== 'storage';
    const tile = keys * (headSize + 8);
    const element = source === 'words' ? 'vec4<u32>' : 'f16';
    return defineKernel({
      name: `matrix attention f16→${out} ${headSize}, ${queries}×${keys} by ${parts} of ${m}×${n}×${k} from ${source}`,
      bindings: [
        { name: 'q', access: 'read', element: 'vec4<u32>' },
        ...['k', 'v'].map((name): KernelBinding => ({ name, access: 'read', element })),
        vectorBinding('out', 'write', out),
      ],
      uniforms: [
        'rows',
        'keys',
        'scale: f32',
        ...['q', 'k', 'v', 'out'].flatMap((name) => [`${name}Head`, `${name}Row`, `${name}First`]),
      ],
      threads,
      workgroupBytes:
        4 * queries * sumStride + 2 * queries * weightStride + (staged ? 2 * 2 * tile : 0) + 4,
      subgroup: variant.subgroup,
      ...matrixText,
      declarations: `
var<workgroup> sums: array<f32, ${queries * sumStride}>;
var<workgroup> weights: array<f16, ${queries * weightStride}>;
${staged ? ['K', 'V'].map((name) => `var<workgroup> tile${name}: array<f16, ${tile}>;`).join('\n') : ''}
var<workgroup> exceeded: atomic<u32>;
${halfFunctions}`,
      body: bodyText(variant, shape),
    });
  },
);

/**
 * As `attentionDispatch`. Kernels that load from storage read whole tiles of keys, and need as many.
 *
 * @throws TypeError for strides that are no multiples of 8
 */
export function matrixAttentionDispatch(
  variant: MatrixAttentionVariant,
  shape: AttentionShape,
  run: AttentionRun,
): Dispatch {
  return dispatchOf(matrixAttentionKernel(variant, shape), variant, shape, run);
}

function bodyText(variant: MatrixAttentionVariant, shape: AttentionShape): string {
  const { queries, keys, parts, n } = variant;
  const { headSize } = shape;
  const { threads, lanes, own, share, blocks, sumStride, weightStride } = geometryOf(variant);
  const { result } = typesOf(variant);
  const fill = fillOf(variant, shape);
  const ahead = variant.source === 'ahead';
  const rows = (line: (i: number) => string) => lines(own, line);
  return `
  let queryTiles = (uniforms.rows + ${queries - 1}u) / ${queries}u;
  let head = group / queryTiles;
  let firstQuery = group % queryTiles * ${queries}u;
  let partRow = subgroup * ${queries / parts}u;
  let lane = thread % ${lanes}u;
${rows(
  (i) => `  let row${i} = thread / ${lanes}u + ${i * threads}u;
  let sumsAt${i} = row${i} * ${sumStride}u + lane * ${share}u;
  // Eight rows lie in banks of their own; the others, and lanes, begin with another of four elements.
${lines(
  4,
  (c) => `  let skew${i}_${c} = (row${i} / 8u * ${lanes}u + lane + ${c}u) % 4u;
  let sumAt${i}_${c} = sumsAt${i} + skew${i}_${c};
  let weightAt${i}_${c} = row${i} * ${weightStride}u + lane * ${share}u + skew${i}_${c};`,
)}
  // Weights are relative to 2 to the power of the reference.
  var reference${i} = -1e30;
  var total${i} = 0.0;`,
)}
${lines(blocks, (i) => lines(headSize / n, (j) => `  var o${i}_${j} = ${result}();`))}
${queryText(variant, shape)}
${fill ? `${fill('k').setup}${fill('v').setup}${fill('k').load('0u')}` : ''}
${fill && ahead ? `${fill('k').store}\n  workgroupBarrier();` : ''}
  for (var firstKey = 0u; firstKey < uniforms.keys; firstKey += ${keys}u) {
${tileText(variant, shape)}
  }
${resultText(variant, shape)}`;
}

/** Statements that only subgroups with a part run: where subgroups are smaller than the largest, there are more. */
function ofParts({ parts }: MatrixAttentionVariant, text: string): string {
  return `    if (subgroup < ${parts}u) {
${text}
    }`;
}

/** Eight f16 of a word to workgroup memory, whose elements are single for matrices to be loaded from. */
function store8(area: string, at: string, words: string): string {
  const pairs = upTo(2).map((pair) => {
    const of = `bitcast<vec4<f16>>(${words}.${pair === 0 ? 'xy' : 'zw'})`;
    const stores = upTo(4).map((c) => `${area}[at + ${4 * pair + c}u] = v${pair}.${'xyzw'[c]};`);
    return `let v${pair} = ${of}; ${stores.join(' ')}`;
  });
  return `let at = ${at};
        ${pairs.join('\n        ')}`;
}

/** The part's rows of Q as matrices, by way of the memory of the weights. */
function queryText(variant: MatrixAttentionVariant, { headSize }: AttentionShape): string {
  const { queries, keys, m, k } = variant;
  const { threads, blocks, weightStride } = geometryOf(variant);
  const { left } = typesOf(variant);
  const words = keys / 8;
  const row = place('q', 'min(firstQuery + row, uniforms.rows - 1u)');
  const declared = lines(blocks, (i) =>
    lines(headSize / k, (c) => `  var q${i}_${c} = ${left}();`),
  );
  const slices = lines(
    headSize / keys,
    (slice) => `
    workgroupBarrier();
${eachUnit(
  queries * words,
  threads,
  `
        let row = unit / ${words}u;
        let word = unit % ${words}u;
        let words = q[${row} + ${slice * words}u + word];
        ${store8('weights', `row * ${weightStride}u + word * 8u`, 'words')}`,
)}
    workgroupBarrier();
${ofParts(
  variant,
  lines(blocks, (i) =>
    lines(
      keys / k,
      (c) =>
        `      q${i}_${(slice * keys) / k + c} = subgroupMatrixLoad<${left}, row_major>(&weights, (partRow + ${i * m}u) * ${weightStride}u + ${c * k}u, ${weightStride}u);`,
    ),
  ),
)}`,
  );
  return `${declared}\n${slices}`;
}

/** A tile of K or V on its way through registers to workgroup memory. */
interface Fill {
  readonly setup: string;
  readonly load: (firstKey: string) => string;
  readonly store: string;
}

/** Null where there is no such way. */
function fillOf(variant: MatrixAttentionVariant, shape: AttentionShape) {
  const { source } = variant;
  if (source === 'storage') return null;
  const make = source === 'words' ? wordFill : matrixFill;
  return (name: 'k' | 'v'): Fill => make(variant, shape, name);
}

/** Where a tile of whole keys begins: the last one earlier than its first key, so that it ends with the last key. */
const wholeTile = ({ keys }: MatrixAttentionVariant, firstKey: string) =>
  `min(${firstKey}, uniforms.keys - ${keys}u)`;

/** Statements: where the matrices of a tile are in storage. */
const tilePlace = (variant: MatrixAttentionVariant, name: 'k' | 'v', firstKey: string) =>
  `    let ${name}At = (${place(name, wholeTile(variant, firstKey))}) * 8u;
    let ${name}Stride = uniforms.${name}Row * 8u;`;

const orders = { k: 'col_major', v: 'row_major' };

function matrixFill(
  variant: MatrixAttentionVariant,
  { headSize }: AttentionShape,
  name: 'k' | 'v',
): Fill {
  const { keys, parts, n, k } = variant;
  const { right } = typesOf(variant);
  const [rows, columns] = name === 'k' ? [n, k] : [k, n];
  const across = headSize / columns;
  const count = (keys / rows) * across;
  const turns = Math.ceil(count / parts);
  const order = orders[name];
  const each = (text: (turn: number) => string) =>
    ofParts(
      variant,
      lines(turns, (turn) => {
        const partial = (turn + 1) * parts > count;
        const guard = partial ? `if (subgroup < ${count - turn * parts}u) ` : '';
        return `      ${guard}{
        let row = (subgroup + ${turn * parts}u) / ${across}u * ${rows}u;
        let column = (subgroup + ${turn * parts}u) % ${across}u * ${columns}u;
        ${text(turn)}
      }`;
      }),
    );
  const stride = headSize + 8;
  const load = (firstKey: string) => `    {
${tilePlace(variant, name, firstKey)}
${each(
  (turn) =>
    `${name}Next${turn} = subgroupMatrixLoad<${right}, ${order}>(&${name}, ${name}At + row * ${name}Stride + column, ${name}Stride);`,
)}
    }`;
  return {
    setup: `${lines(turns, (turn) => `  var ${name}Next${turn} = ${right}();`)}\n`,
    load,
    store: each(
      (turn) =>
        `subgroupMatrixStore<${order}>(&tile${name.toUpperCase()}, row * ${stride}u + column, ${name}Next${turn}, ${stride}u);`,
    ),
  };
}

function wordFill(
  variant: MatrixAttentionVariant,
  { headSize }: AttentionShape,
  name: 'k' | 'v',
): Fill {
  const { keys } = variant;
  const { threads } = geometryOf(variant);
  const words = headSize / 8;
  const count = keys * words;
  const each = (text: (turn: number) => string) =>
    lines(Math.ceil(count / threads), (turn) => {
      const partial = (turn + 1) * threads > count;
      return `    ${partial ? `if (thread < ${count - turn * threads}u) ` : ''}{
        let unit = thread + ${turn * threads}u;
        let row = unit / ${words}u;
        let word = unit % ${words}u;
        ${text(turn)}
    }`;
    });
  const load = (firstKey: string) =>
    each(
      (turn) =>
        `${name}Words${turn} = ${name}[${place(name, `min(${firstKey} + row, uniforms.keys - 1u)`)} + word];`,
    );
  const registers = lines(
    Math.ceil(count / threads),
    (turn) => `  var ${name}Words${turn} = vec4<u32>();`,
  );
  return {
    setup: `${registers}\n`,
    load,
    store: each((turn) =>
      store8(
        `tile${name.toUpperCase()}`,
        `row * ${headSize + 8}u + word * 8u`,
        `${name}Words${turn}`,
      ),
    ),
  };
}

/** Logits, weights, results of a tile of keys. */
function tileText(variant: MatrixAttentionVariant, shape: AttentionShape): string {
  const { keys, m, n, k, source } = variant;
  const { headSize } = shape;
  const { own, share, blocks, sumStride, weightStride } = geometryOf(variant);
  const { left, right, result } = typesOf(variant);
  const fill = fillOf(variant, shape);
  const ahead = source === 'ahead';
  const rows = (line: (i: number) => string) => lines(own, line);
  const each = (line: (i: number, j: number) => string) =>
    rows((i) => lines(share, (j) => line(i, j)));
  /** A matrix of K or V, whose first row and column are given. */
  const matrix = (name: 'k' | 'v', row: number, column: number) => {
    const [pointer, at, stride] = fill
      ? [`&tile${name.toUpperCase()}`, `${row * (headSize + 8) + column}u`, `${headSize + 8}u`]
      : [`&${name}`, `${name}At + ${row}u * ${name}Stride + ${column}u`, `${name}Stride`];
    return `subgroupMatrixLoad<${right}, ${orders[name]}>(${pointer}, ${at}, ${stride})`;
  };
  const logits = lines(
    keys / n,
    (j) => `      {
${lines(blocks, (i) => `        var s${i} = ${result}();`)}
${lines(
  headSize / k,
  (c) => `        {
          let r = ${matrix('k', j * n, c * k)};
${lines(blocks, (i) => `          s${i} = subgroupMatrixMultiplyAccumulate(q${i}_${c}, r, s${i});`)}
        }`,
)}
${lines(blocks, (i) => `        subgroupMatrixStore<row_major>(&sums, (partRow + ${i * m}u) * ${sumStride}u + ${j * n}u, s${i}, ${sumStride}u);`)}
      }`,
  );
  const values = lines(
    keys / k,
    (c) => `      {
${lines(blocks, (i) => `        let p${i} = subgroupMatrixLoad<${left}, row_major>(&weights, (partRow + ${i * m}u) * ${weightStride}u + ${c * k}u, ${weightStride}u);`)}
${lines(
  headSize / n,
  (j) => `        {
          let r = ${matrix('v', c * k, j * n)};
${lines(blocks, (i) => `          o${i}_${j} = subgroupMatrixMultiplyAccumulate(p${i}, r, o${i}_${j});`)}
        }`,
)}
      }`,
  );
  // The sum of four does not depend on which of them is the first.
  const weights = rows((i) =>
    lines(
      share / 4,
      (quad) => `    {
${lines(
  4,
  (c) => `      let w${c} = f16(exp2(fma(s${i}_${4 * quad + c}, uniforms.scale, -reference${i})));
      weights[weightAt${i}_${c} + ${4 * quad}u] = w${c};`,
)}
      added${i} += (f32(w0) + f32(w2)) + (f32(w1) + f32(w3));
    }`,
    ),
  );
  const most = (i: number) =>
    upTo(share)
      .map((j) => `s${i}_${j}`)
      .reduce((text, value) => `max(${text}, ${value})`);
  const [first, isKey] =
    source === 'words'
      ? ['firstKey', 'key < uniforms.keys']
      : [wholeTile(variant, 'firstKey'), 'key >= firstKey'];
  return `
${
  fill
    ? ahead
      ? `${fill('k').load(`(firstKey + ${keys}u)`)}\n${fill('v').load('firstKey')}`
      : `${fill('k').store}
    workgroupBarrier();
${fill('v').load('firstKey')}`
    : `${tilePlace(variant, 'k', 'firstKey')}\n${tilePlace(variant, 'v', 'firstKey')}`
}
${ofParts(variant, logits)}
${fill && !ahead ? fill('v').store : ''}
    workgroupBarrier();
${fill && ahead ? `${fill('k').store}\n${fill('v').store}` : ''}
${each((i, j) => `    var s${i}_${j} = sums[sumAt${i}_${j % 4} + ${j - (j % 4)}u];`)}
    if (firstKey + ${keys}u > uniforms.keys) {
      let own = ${first} + lane * ${share}u;
${each(
  (i, j) => `      {
        let key = own + skew${i}_${j % 4} + ${j - (j % 4)}u;
        s${i}_${j} = select(-1e30, s${i}_${j}, ${isKey});
      }`,
)}
    }
${rows(
  (i) => `    let most${i} = ${most(i)} * uniforms.scale;
    if (most${i} > reference${i} + ${mostAbove}.0) { atomicStore(&exceeded, 1u); }`,
)}
${rows((i) => `    var added${i} = 0.0;`)}
${weights}
    if (workgroupUniformLoad(&exceeded) != 0u) {
${raiseText(variant, shape, most)}
${rows((i) => `    added${i} = 0.0;`)}
${weights}
      workgroupBarrier();
    }
${rows((i) => `    total${i} += added${i};`)}
${fill && !ahead ? fill('k').load(`(firstKey + ${keys}u)`) : ''}
${ofParts(variant, values)}`;
}

/** New references for the rows that exceed theirs; results and totals are scaled. */
function raiseText(
  variant: MatrixAttentionVariant,
  shape: AttentionShape,
  most: (i: number) => string,
): string {
  const { own, lanes, share, sumStride } = geometryOf(variant);
  const rows = (line: (i: number) => string) => lines(own, line);
  return `${rows((i) => `      sums[row${i} * ${sumStride}u + lane] = ${most(i)} * uniforms.scale;`)}
      if (thread == 0u) { atomicStore(&exceeded, 0u); }
      workgroupBarrier();
${rows(
  (i) => `      var most${i} = sums[row${i} * ${sumStride}u];
${lines(lanes - 1, (other) => `      most${i} = max(most${i}, sums[row${i} * ${sumStride}u + ${other + 1}u]);`)}
      let next${i} = select(reference${i}, most${i} - ${setAbove}.0, most${i} > reference${i} + ${mostAbove}.0);
      let factor${i} = exp2(reference${i} - next${i});
      reference${i} = next${i};
      total${i} *= factor${i};`,
)}
${throughSums(
  variant,
  shape,
  () => rows((i) => lines(share, (j) => `      sums[sumsAt${i} + ${j}u] *= factor${i};`)),
  true,
)}`;
}

/** A slice of the results of all rows after the other in the memory of the logits, where threads change or read them. */
function throughSums(
  variant: MatrixAttentionVariant,
  { headSize }: AttentionShape,
  text: (slice: number) => string,
  back: boolean,
): string {
  const { keys, m, n } = variant;
  const { blocks, sumStride } = geometryOf(variant);
  const { result } = typesOf(variant);
  return lines(headSize / keys, (slice) => {
    const each = (line: (name: string, at: string) => string) =>
      ofParts(
        variant,
        lines(blocks, (i) =>
          lines(keys / n, (j) =>
            line(
              `o${i}_${(slice * keys) / n + j}`,
              `(partRow + ${i * m}u) * ${sumStride}u + ${j * n}u`,
            ),
          ),
        ),
      );
    return `
    workgroupBarrier();
${each((name, at) => `      subgroupMatrixStore<row_major>(&sums, ${at}, ${name}, ${sumStride}u);`)}
    workgroupBarrier();
${text(slice)}${
  back
    ? `
    workgroupBarrier();
${each((name, at) => `      ${name} = subgroupMatrixLoad<${result}, row_major>(&sums, ${at}, ${sumStride}u);`)}`
    : ''
}`;
  });
}

/** Divides by the totals of the rows and stores. */
function resultText(variant: MatrixAttentionVariant, shape: AttentionShape): string {
  const { keys } = variant;
  const { own, lanes, share, sumStride } = geometryOf(variant);
  const rows = (line: (i: number) => string) => lines(own, line);
  return `
  workgroupBarrier();
${rows((i) => `  sums[row${i} * ${sumStride}u + lane] = total${i};`)}
  workgroupBarrier();
${rows(
  (i) => `  var whole${i} = sums[row${i} * ${sumStride}u];
${lines(lanes - 1, (other) => `  whole${i} += sums[row${i} * ${sumStride}u + ${other + 1}u];`)}`,
)}
${throughSums(
  variant,
  shape,
  (slice) =>
    rows(
      (i) => `    if (firstQuery + row${i} < uniforms.rows) {
      let start = (${place('out', `firstQuery + row${i}`)}) * 2u + ${(slice * keys) / 4}u + lane * ${share / 4}u;
${lines(share / 4, (quad) => {
  const four = upTo(4).map((c) => `sums[sumsAt${i} + ${4 * quad + c}u]`);
  return `      ${store4('out', shape.out, `start + ${quad}u`, `vec4<f32>(${four.join(', ')}) / whole${i}`)}`;
})}
    }`,
    ),
  false,
)}`;
}

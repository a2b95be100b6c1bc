import { memoised } from '../../graph';
import { type AttentionRun, dispatchOf, widest } from './attention';
import { eachUnit, largestHead, place, rowsBinding } from './attention-tile';
import type { AttentionShape, MatrixAttentionVariant } from './choice';
import { type Compute, type Dispatch, fits } from './compute';
import { defineKernel, type Kernel } from './kernel';
import { deviceMatrices, matrixText, typesOf } from './linear-matrix';
import { halfFunctions, lines, range, store4, vectorBinding } from './text';

/*
 * Attention of the mode `matrix`: both products on the GPU's matrix units, f16 products and f32 sums. A subgroup has
 * whole rows. Nothing can be done to a row of a matrix, so logits pass through workgroup memory to the threads that
 * make weights of them; and results stay relative to an older maximum of the row as long as f16 holds the weights
 * (as in FlashAttention-4): they are scaled, through workgroup memory as well, where a tile exceeds it.
 *
 * Offsets and strides of matrices count the elements of their array: words of eight f16, or vectors of four f32.
 */

/** The last is for GPUs with little memory whose subgroups may have 64 invocations. */
const tiles: readonly (readonly [queries: number, keys: number, parts: number])[] = [
  [128, 32, 8],
  [64, 16, 4],
  [128, 32, 4],
  [64, 32, 4],
];

/** Geometries that a device can run, the best guess first; none where it has no such matrices. */
export function matrixAttentionVariants(
  compute: Pick<Compute, 'features' | 'limits' | 'matrices' | 'subgroupSizes'>,
): MatrixAttentionVariant[] {
  const [largest] = deviceMatrices(compute);
  if (!largest) return [];
  return tiles
    .map(([queries, keys, parts]): MatrixAttentionVariant => {
      return { ...largest, queries, keys, parts };
    })
    .filter(
      (variant) =>
        hasMatrixAttention(variant, widest) &&
        fits(compute, matrixAttentionKernel(variant, widest)),
    );
}

/** Whether a variant computes a shape: heads of whole tiles in f16, without a bias. */
export function hasMatrixAttention(
  variant: MatrixAttentionVariant,
  { headSize, q, kv, bias }: AttentionShape,
): boolean {
  const { queries, keys, parts, m, n, k } = variant;
  const { lanes, own, share } = geometryOf(variant);
  const whole = [queries / parts / m, keys / n, keys / k, headSize / keys, lanes, own, share / 8];
  return q === 'f16' && kv === 'f16' && bias === 'none' && whole.every(Number.isInteger);
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
    // Elements of the arrays from one row to the next: one more than a row has keeps rows apart in the memory's banks.
    sumStride: keys / 4 + 1,
    weightStride: keys / 8 + 1,
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
    const { queries, keys, parts, m, n, k } = variant;
    const { headSize, kv, out } = shape;
    const { threads, sumStride, weightStride } = geometryOf(variant);
    const areas = [
      ['sums', 'vec4<f32>', queries * sumStride],
      ['weights', 'vec4<u32>', queries * weightStride],
      ['tileK', 'vec4<u32>', keys * rowWords(headSize)],
      ['tileV', 'vec4<u32>', keys * rowWords(headSize)],
    ] as const;
    return defineKernel({
      name: `matrix attention f16→${out} ${headSize}, ${queries}×${keys} by ${parts} of ${m}×${n}×${k}`,
      bindings: [
        ...['q', 'k', 'v'].map((name) => rowsBinding(name, kv)),
        vectorBinding('out', 'write', out),
      ],
      uniforms: [
        'rows',
        'keys',
        'scale: f32',
        ...['q', 'k', 'v', 'out'].flatMap((name) => [`${name}Head`, `${name}Row`, `${name}First`]),
      ],
      threads,
      workgroupBytes: areas.reduce((bytes, [, , count]) => bytes + 16 * count, 16),
      subgroup: variant.subgroup,
      ...matrixText,
      declarations: `
${areas.map(([name, element, count]) => `var<workgroup> ${name}: array<${element}, ${count}>;`).join('\n')}
var<workgroup> exceeded: atomic<u32>;
${halfFunctions}`,
      body: bodyText(variant, shape),
    });
  },
);

/** Words from one row of a tile to the next, one more than it has. */
const rowWords = (headSize: number) => headSize / 8 + 1;

/**
 * As `attentionDispatch`.
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
  const [fillK, fillV] = [fillOf(variant, shape, 'k'), fillOf(variant, shape, 'v')];
  return `
  let queryTiles = (uniforms.rows + ${queries - 1}u) / ${queries}u;
  let head = group / queryTiles;
  let firstQuery = group % queryTiles * ${queries}u;
  // The bound tells the compiler that matrices lie in their arrays: it checks the others each time.
  let partRow = min(subgroup, ${parts - 1}u) * ${queries / parts}u;
  let lane = thread % ${lanes}u;
${lines(
  own,
  (i) => `  let row${i} = thread / ${lanes}u + ${i * threads}u;
  let sumsAt${i} = row${i} * ${sumStride}u + lane * ${share / 4}u;
  let weightsAt${i} = row${i} * ${weightStride}u + lane * ${share / 8}u;
  // Weights are relative to 2 to the power of the reference.
  var reference${i} = -1e30;
  var total${i} = vec4<f32>();`,
)}
${lines(blocks, (i) => lines(headSize / n, (j) => `  var o${i}_${j} = ${result}();`))}
${queryText(variant, shape)}
${fillK.setup}
${fillV.setup}
${fillK.load('0u')}
${fillK.store}
    workgroupBarrier();
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

/** The arguments of a load or a store of a matrix with these first row and column. */
const placed = (area: string, row: string, column: string, stride: string) =>
  `&${area}, (${row}) * ${stride} + ${column}, ${stride}`;

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
        weights[row * ${weightStride}u + word] = q[${row} + ${slice * words}u + word];`,
)}
    workgroupBarrier();
${ofParts(
  variant,
  lines(blocks, (i) =>
    lines(
      keys / k,
      (c) =>
        `      q${i}_${(slice * keys) / k + c} = subgroupMatrixLoad<${left}, row_major>(${placed('weights', `partRow + ${i * m}u`, `${(c * k) / 8}u`, `${weightStride}u`)});`,
    ),
  ),
)}`,
  );
  return `${declared}\n${slices}`;
}

/** A tile of K or V on its way through registers to workgroup memory. */
function fillOf(variant: MatrixAttentionVariant, { headSize }: AttentionShape, name: 'k' | 'v') {
  const { threads } = geometryOf(variant);
  const words = headSize / 8;
  const count = variant.keys * words;
  const each = (text: (turn: number) => string) =>
    lines(Math.ceil(count / threads), (turn) => {
      const partial = (turn + 1) * threads > count;
      return `    ${partial ? `if (thread < ${count - turn * threads}u) ` : ''}{
      let row = (thread + ${turn * threads}u) / ${words}u;
      let word = (thread + ${turn * threads}u) % ${words}u;
      ${text(turn)}
    }`;
    });
  return {
    setup: lines(Math.ceil(count / threads), (turn) => `  var ${name}Words${turn} = vec4<u32>();`),
    load: (firstKey: string) =>
      each(
        (turn) =>
          `${name}Words${turn} = ${name}[${place(name, `min(${firstKey} + row, uniforms.keys - 1u)`)} + word];`,
      ),
    store: each(
      (turn) =>
        `tile${name.toUpperCase()}[row * ${rowWords(headSize)}u + word] = ${name}Words${turn};`,
    ),
  };
}

/** Logits, weights, results of a tile of keys. */
function tileText(variant: MatrixAttentionVariant, shape: AttentionShape): string {
  const { keys, m, n, k } = variant;
  const { headSize } = shape;
  const { own, share, blocks, sumStride, weightStride } = geometryOf(variant);
  const { left, right, result } = typesOf(variant);
  const [fillK, fillV] = [fillOf(variant, shape, 'k'), fillOf(variant, shape, 'v')];
  const rows = (line: (i: number) => string) => lines(own, line);
  const each = (line: (i: number, j: number) => string) =>
    rows((i) => lines(share / 4, (j) => line(i, j)));
  /** Loads a matrix of K or V with this first key and channel. */
  const matrix = (name: 'k' | 'v', key: number, channel: number) => {
    const stride = rowWords(headSize);
    const order = name === 'k' ? 'col_major' : 'row_major';
    return `subgroupMatrixLoad<${right}, ${order}>(&tile${name.toUpperCase()}, ${key * stride + channel / 8}u, ${stride}u)`;
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
${lines(blocks, (i) => `        subgroupMatrixStore<row_major>(&sums, (partRow + ${i * m}u) * ${sumStride}u + ${(j * n) / 4}u, s${i}, ${sumStride}u);`)}
      }`,
  );
  const values = lines(
    keys / k,
    (c) => `      {
${lines(blocks, (i) => `        let p${i} = subgroupMatrixLoad<${left}, row_major>(${placed('weights', `partRow + ${i * m}u`, `${(c * k) / 8}u`, `${weightStride}u`)});`)}
${lines(
  headSize / n,
  (j) => `        {
          let r = ${matrix('v', c * k, j * n)};
${lines(blocks, (i) => `          o${i}_${j} = subgroupMatrixMultiplyAccumulate(p${i}, r, o${i}_${j});`)}
        }`,
)}
      }`,
  );
  // What is added is rounded as the weights are, so that numerator and denominator agree.
  const weights = rows((i) =>
    lines(
      share / 8,
      (word) => `    {
${lines(
  2,
  (half) =>
    `      let w${half} = vec4<f16>(exp2(fma(s${i}_${2 * word + half}, vec4<f32>(uniforms.scale), vec4<f32>(-reference${i}))));`,
)}
      weights[weightsAt${i} + ${word}u] = vec4<u32>(bitcast<vec2<u32>>(w0), bitcast<vec2<u32>>(w1));
      added${i} += vec4<f32>(w0) + vec4<f32>(w1);
    }`,
    ),
  );
  // Words of this tile of V, and of the next of K, arrive while the logits are computed.
  return `
${fillK.load(`(firstKey + ${keys}u)`)}
${fillV.load('firstKey')}
${ofParts(variant, logits)}
    workgroupBarrier();
${fillK.store}
${fillV.store}
${each((i, j) => `    var s${i}_${j} = sums[sumsAt${i} + ${j}u];`)}
    if (firstKey + ${keys}u > uniforms.keys) {
      let own = firstKey + lane * ${share}u + vec4<u32>(0u, 1u, 2u, 3u);
${lines(
  share / 4,
  (j) => `      {
        let key = own + ${4 * j}u;
${rows((i) => `        s${i}_${j} = select(vec4<f32>(-1e30), s${i}_${j}, key < vec4<u32>(uniforms.keys));`)}
      }`,
)}
    }
${rows((i) => {
  const most = range(share / 4)
    .map((j) => `s${i}_${j}`)
    .reduce((text, value) => `max(${text}, ${value})`);
  return `    let mosts${i} = ${most};
    let most${i} = max(max(mosts${i}.x, mosts${i}.y), max(mosts${i}.z, mosts${i}.w)) * uniforms.scale;
    if (most${i} > reference${i} + ${mostAbove}.0) { atomicStore(&exceeded, 1u); }
    var added${i} = vec4<f32>();`;
})}
${weights}
    if (workgroupUniformLoad(&exceeded) != 0u) {
${raiseText(variant, shape)}
${rows((i) => `    added${i} = vec4<f32>();`)}
${weights}
      workgroupBarrier();
    }
${rows((i) => `    total${i} += added${i};`)}
${ofParts(variant, values)}`;
}

/** New references for the rows that exceed theirs; results and totals are scaled. */
function raiseText(variant: MatrixAttentionVariant, shape: AttentionShape): string {
  const { own, lanes, share, sumStride } = geometryOf(variant);
  const rows = (line: (i: number) => string) => lines(own, line);
  return `${rows((i) => `      sums[row${i} * ${sumStride}u + lane] = vec4<f32>(most${i});`)}
      if (thread == 0u) { atomicStore(&exceeded, 0u); }
      workgroupBarrier();
${rows(
  (i) => `      var whole${i} = sums[row${i} * ${sumStride}u].x;
${lines(lanes - 1, (other) => `      whole${i} = max(whole${i}, sums[row${i} * ${sumStride}u + ${other + 1}u].x);`)}
      let next${i} = select(reference${i}, whole${i} - ${setAbove}.0, whole${i} > reference${i} + ${mostAbove}.0);
      let factor${i} = exp2(reference${i} - next${i});
      reference${i} = next${i};
      total${i} *= factor${i};`,
)}
${throughSums(
  variant,
  shape,
  () => rows((i) => lines(share / 4, (j) => `      sums[sumsAt${i} + ${j}u] *= factor${i};`)),
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
              `(partRow + ${i * m}u) * ${sumStride}u + ${(j * n) / 4}u`,
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
  (i) => `  var all${i} = sums[row${i} * ${sumStride}u];
${lines(lanes - 1, (other) => `  all${i} += sums[row${i} * ${sumStride}u + ${other + 1}u];`)}
  let factor${i} = 1.0 / ((all${i}.x + all${i}.y) + (all${i}.z + all${i}.w));`,
)}
${throughSums(
  variant,
  shape,
  (slice) =>
    rows(
      (i) => `    if (firstQuery + row${i} < uniforms.rows) {
      let start = (${place('out', `firstQuery + row${i}`)}) * 2u + ${(slice * keys) / 4}u + lane * ${share / 4}u;
${lines(share / 4, (j) => `      ${store4('out', shape.out, `start + ${j}u`, `sums[sumsAt${i} + ${j}u] * factor${i}`)}`)}
    }`,
    ),
  false,
)}`;
}

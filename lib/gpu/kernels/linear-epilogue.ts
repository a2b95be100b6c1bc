import type { LinearShape, LinearVariant } from './choice';
import type { KernelBinding } from './kernel';
import { halfFunctions, lines, load4, range, store4, vectorBinding } from './text';

/*
 * What linear kernels share beside their products: the place of a workgroup's tile and of a thread's sums in it, the
 * low-rank branch, and what is done with a sum. A thread's sums are c{row}_{column}.
 */

/** Tiles down that follow each other before the next tile across: their rows of x stay in the cache. */
const band = 8;

type Geometry = Pick<LinearVariant, 'rows' | 'columns' | 'threadRows' | 'threadColumns'>;
/** A row of N elements is read and written four at a time where N allows it. */
const lanesOf = (size: number) => (size % 4 === 0 ? 4 : 1);
const elementOf = (size: number) => (size % 4 === 0 ? 'vec4<f32>' : 'f32');

/** Statements: `tileRow`, `tileColumn`, and the thread's place in them, `threadRow` and `threadColumn`. */
export function tileLines({ rows, columns, threadColumns }: Geometry, { n }: LinearShape): string {
  const across = Math.ceil(n / columns);
  return `
  let tilesDown = (uniforms.rows + ${rows - 1}u) / ${rows}u;
  let firstDown = group / ${band * across}u * ${band}u;
  let down = min(${band}u, tilesDown - firstDown);
  let inBand = group % ${band * across}u;
  let tileRow = (firstDown + inBand % down) * ${rows}u;
  let tileColumn = inBand / down * ${columns}u;
  let threadRow = thread / ${columns / threadColumns}u;
  let threadColumn = thread % ${columns / threadColumns}u;`;
}

/** The column, within the tile, of a thread's sum `j`: four sums lie side by side, so that they are stored at once. */
export function columnOf({ columns, threadColumns }: Geometry, j: number): string {
  const across = columns / threadColumns;
  return `threadColumn * 4u + ${Math.floor(j / 4) * 4 * across + (j % 4)}u`;
}

/** Statements: the sums, zero. */
export function accumulatorLines({ threadRows, threadColumns }: Geometry): string {
  return range(threadRows)
    .flatMap((i) => range(threadColumns).map((j) => `  var c${i}_${j} = 0.0;`))
    .join('\n');
}

/** Bindings behind those of x and the weight. */
export function epilogueBindings(shape: LinearShape): KernelBinding[] {
  const { n, rank, up = 'f32', bias, epilogue, output, counted } = shape;
  const read = (name: string, size: number): KernelBinding => {
    return { name, access: 'read', element: elementOf(size) };
  };
  return [
    ...(rank ? [read('t', rank), vectorBinding('up', 'read', up)] : []),
    ...(bias ? [read('bias', n)] : []),
    ...(epilogue === 'gated' ? [read('gate', n)] : []),
    ...(counted ? [{ name: 'overflows', access: 'write', element: 'atomic<u32>' } as const] : []),
    output === 'f16'
      ? vectorBinding('y', 'write', 'f16')
      : { name: 'y', access: 'write', element: elementOf(n) },
  ];
}

/** Uniforms behind `rows` and `xFirst`. */
export function epilogueUniforms({ rank, epilogue }: LinearShape): string[] {
  return ['yFirst', ...(epilogue === 'gated' ? ['gateFirst'] : []), ...(rank ? ['tFirst'] : [])];
}

/** The function `finish`, which stores a sum, or four side by side. */
export function epilogueDeclarations(shape: LinearShape): string {
  const { n, bias, epilogue, output, counted } = shape;
  const lanes = lanesOf(n);
  const type = elementOf(n);
  const gate =
    epilogue === 'gated' ? `gate[(uniforms.gateFirst * ${n}u + column) / ${lanes}u]` : '';
  const lines = [
    bias ? `v += bias[column / ${lanes}u];` : '',
    epilogue === 'gelu' ? 'v = gelu(v);' : '',
    epilogue === 'gated' ? `v = fma(${gate}, v, y[at]);` : '',
    epilogue === 'added' ? 'v += y[at];' : '',
    epilogue === 'times' ? 'v *= y[at];' : '',
    counted ? `if (any(abs(v) > ${type}(65504.0))) { atomicAdd(&overflows[0], 1u); }` : '',
    store4('y', output, 'at', 'v'),
  ];
  return `
${halfFunctions}
${epilogue === 'gelu' ? geluFunction(type) : ''}
fn finish(row: u32, column: u32, sum: ${type}) {
  if (row >= uniforms.rows || column >= ${n}u) { return; }
  let at = ((uniforms.yFirst + row) * ${n}u + column) / ${lanes}u;
  var v = sum;
  ${lines.filter(Boolean).join('\n  ')}
}`;
}

/** The tanh form, as v·σ(2u): exact for large v, where 1 + tanh(u) would cancel. */
function geluFunction(type: string): string {
  return `
fn gelu(v: ${type}) -> ${type} {
  let twice = 1.5957691216057308 * v * (1.0 + 0.044715 * v * v);
  return v / (1.0 + exp(-clamp(twice, ${type}(-80.0), ${type}(80.0))));
}`;
}

/** Statements that add the low-rank branch to the sums and store them. */
export function epilogueLines(geometry: Geometry, shape: LinearShape): string {
  const { threadRows, threadColumns } = geometry;
  const stores = range(threadRows).flatMap((i) =>
    range(threadColumns / 4).map((quad) => {
      const sums = range(4).map((lane) => `c${i}_${4 * quad + lane}`);
      const row = `tileRow + threadRow * ${threadRows}u + ${i}u`;
      const column = (lane: number) => `tileColumn + ${columnOf(geometry, 4 * quad + lane)}`;
      return lanesOf(shape.n) === 4
        ? `  finish(${row}, ${column(0)}, vec4<f32>(${sums.join(', ')}));`
        : sums.map((sum, lane) => `  finish(${row}, ${column(lane)}, ${sum});`).join('\n');
    }),
  );
  return `${shape.rank ? lowRankLines(geometry, shape) : ''}\n${stores.join('\n')}`;
}

function lowRankLines(geometry: Geometry, { n, rank, up = 'f32' }: LinearShape): string {
  const { threadRows, threadColumns } = geometry;
  const perRow = rank / 4;
  const add = (sum: string, a: string, w: string) =>
    `${sum} = fma(${a}.w, ${w}.w, fma(${a}.z, ${w}.z, fma(${a}.y, ${w}.y, fma(${a}.x, ${w}.x, ${sum}))));`;
  return `
${lines(
  threadRows,
  (i) =>
    `  let t${i} = (uniforms.tFirst + min(tileRow + threadRow * ${threadRows}u + ${i}u, uniforms.rows - 1u)) * ${perRow}u;`,
)}
${lines(threadColumns, (j) => `  let up${j} = min(tileColumn + ${columnOf(geometry, j)}, ${n - 1}u) * ${perRow}u;`)}
  for (var r = 0u; r < ${perRow}u; r++) {
${lines(threadColumns, (j) => `    let w${j} = ${load4('up', up, `up${j} + r`)};`)}
${lines(
  threadRows,
  (i) =>
    `    { let a = t[t${i} + r];\n      ${range(threadColumns)
      .map((j) => add(`c${i}_${j}`, 'a', `w${j}`))
      .join('\n      ')} }`,
)}
  }`;
}

import { memoised } from '../../graph';
import type { DeviceTensor } from '../tensor';
import { type Dispatch, type Operand, type RowView, rowOperands } from './compute';
import { defineKernel, type Kernel, type Storage } from './kernel';
import { halfFunctions, load4, store4, vectorBinding } from './text';

/*
 * What a transformer does between its matrix products: norms, rotary embedding, sums. A workgroup computes a
 * row of `width` elements; each of its threads keeps its part in registers, so that a row is read once.
 * Statistics are f32. Everything is counted in groups of four elements.
 */

type Vector = DeviceTensor | Operand;

/** A layer norm over rows of `width` elements, a multiple of 4. */
export interface LayerNormShape {
  readonly width: number;
  readonly epsilon: number;
  readonly output: Storage;
}

/** `y = (x − mean)/√(variance + ε) · (one + scale) + shift`; `x` is f32, `scale` and `shift` are a row each. */
export const layerNormKernel = memoised(({ width, epsilon, output }: LayerNormShape): Kernel => {
  const row = new RowText(width);
  return defineKernel({
    name: `layer norm ${width} →${output}`,
    mode: 'exact',
    bindings: [
      vectorBinding('x', 'read', 'f32'),
      vectorBinding('scale', 'read', 'f32'),
      vectorBinding('shift', 'read', 'f32'),
      vectorBinding('y', 'write', output),
    ],
    uniforms: ['xFirst', 'yFirst', 'one: f32'],
    ...row.workgroup,
    body: `
  let source = (uniforms.xFirst + group) * ${row.vectors}u;
  let destination = (uniforms.yFirst + group) * ${row.vectors}u;
${row.each((v, i) => `  var ${v} = vec4<f32>(0.0); if (${row.inside(i)}) { ${v} = x[source + ${i}]; }`)}
  let mean = sumOfRow(${row.total((v) => `dot(${v}, vec4<f32>(1.0))`)}, thread) / ${width}.0;
${row.each((v, i) => `  if (${row.inside(i)}) { ${v} -= mean; }`)}
  let variance = sumOfRow(${row.total((v) => `dot(${v}, ${v})`)}, thread) / ${width}.0;
  let factor = inverseSqrt(variance + ${epsilon});
${row.each(
  (v, i) => `  if (${row.inside(i)}) {
    ${store4('y', output, `destination + ${i}`, `${v} * factor * (uniforms.one + scale[${i}]) + shift[${i}]`)}
  }`,
)}`,
  });
});

export interface LayerNormOperands {
  readonly x: RowView;
  readonly y: RowView;
  readonly rows: number;
  readonly scale: Vector;
  readonly shift: Vector;
  /** 1 where `scale` is a change of the size, 0 where it is the size. */
  readonly one: 0 | 1;
}

export function layerNormDispatch(
  shape: LayerNormShape,
  { x, y, rows, scale, shift, one }: LayerNormOperands,
): Dispatch {
  const of = rowOperands({ x, y });
  return {
    kernel: layerNormKernel(shape),
    operands: { ...of.operands, scale, shift },
    uniforms: { ...of.uniforms, one },
    groups: rows,
    flops: rows * shape.width * flopsPerElement,
  };
}

/** What becomes of rows of `width` elements, heads of `headSize` (a multiple of 4) side by side. */
export interface HeadRowsShape {
  readonly width: number;
  readonly headSize: number;
  readonly input: Storage;
  /** Null: the rows are changed where they are. */
  readonly output: Storage | null;
  /** `x/√(mean of squares + ε)·weight` over the whole row; null: no norm. */
  readonly norm: { readonly epsilon: number } | null;
  /** Turns the pairs (2i, 2i+1) of every head by the row's angles. */
  readonly rotary: boolean;
}

/** RMS norm, rotary embedding, and a store in any layout of heads; or only a copy to another storage. */
export const headRowsKernel = memoised((shape: HeadRowsShape): Kernel => {
  const { width, headSize, input, output, norm, rotary } = shape;
  const row = new RowText(width);
  const perHead = headSize / 4;
  const place = (i: string) =>
    output === null
      ? `source + ${i}`
      : `(${i} / ${perHead}u - uniforms.firstHead) * uniforms.headStride + (uniforms.yFirst + group) * uniforms.rowStride + ${i} % ${perHead}u`;
  const headCondition = (i: string) =>
    output === null ? '' : ` && ${i} / ${perHead}u - uniforms.firstHead < uniforms.heads`;
  const turned = (v: string, i: string) => `
    let angle = (uniforms.angleFirst + group) * ${headSize / 2}u + (${i} % ${perHead}u) * 2u;
    let c = vec4<f32>(cosine[angle], cosine[angle], cosine[angle + 1u], cosine[angle + 1u]);
    let s = vec4<f32>(sine[angle], sine[angle], sine[angle + 1u], sine[angle + 1u]);
    ${v} = ${v} * c + vec4<f32>(-${v}.y, ${v}.x, -${v}.w, ${v}.z) * s;`;
  const normed = norm
    ? `
  let squares = sumOfRow(${row.total((v) => `dot(${v}, ${v})`)}, thread);
  let factor = inverseSqrt(squares / ${width}.0 + ${norm.epsilon});`
    : '';
  return defineKernel({
    name: `${['head rows', norm && 'rms', rotary && 'rotary'].filter(Boolean).join(' ')} ${width}/${headSize} ${input}→${output ?? 'in place'}`,
    mode: 'exact',
    bindings: [
      vectorBinding('x', output === null ? 'write' : 'read', input),
      ...(norm ? [vectorBinding('weight', 'read', 'f32')] : []),
      ...(rotary ? angleBindings : []),
      ...(output === null ? [] : [vectorBinding('y', 'write', output)]),
    ],
    uniforms: [
      'xFirst',
      ...(rotary ? ['angleFirst'] : []),
      ...(output === null ? [] : ['yFirst', 'rowStride', 'headStride', 'firstHead', 'heads']),
    ],
    ...row.workgroup,
    body: `
  let source = (uniforms.xFirst + group) * ${row.vectors}u;
${row.each((v, i) => `  var ${v} = vec4<f32>(0.0); if (${row.inside(i)}) { ${v} = ${load4('x', input, `source + ${i}`)}; }`)}
${normed}
${row.each(
  (v, i) => `  if (${row.inside(i)}${headCondition(i)}) {
    ${norm ? `${v} = ${v} * factor * weight[${i}];` : ''}${rotary ? turned(v, i) : ''}
    ${store4(output === null ? 'x' : 'y', output ?? input, place(i), v)}
  }`,
)}`,
  });
});

const angleBindings = [
  { name: 'cosine', access: 'read', element: 'f32' },
  { name: 'sine', access: 'read', element: 'f32' },
] as const;

export interface HeadRowsOperands {
  readonly x: RowView;
  readonly rows: number;
  /** A row of factors, with a norm. */
  readonly weight?: Vector;
  /** Tables [positions, headSize/2], and the position of the first row. */
  readonly angles?: { readonly cos: Vector; readonly sin: Vector; readonly first: number };
  /** Where the rows go, unless they stay: element c of head h is at `h·headStride + row·rowStride + c`. */
  readonly to?: {
    readonly y: Vector;
    readonly firstRow: number;
    /** In elements, multiples of 4. */
    readonly rowStride: number;
    readonly headStride: number;
    /** Only these heads are stored, the first of them as head 0; all of them when absent. */
    readonly heads?: { readonly first: number; readonly count: number };
  };
}

export function headRowsDispatch(
  shape: HeadRowsShape,
  { x, rows, weight, angles, to }: HeadRowsOperands,
): Dispatch {
  const heads = to?.heads ?? { first: 0, count: shape.width / shape.headSize };
  return {
    kernel: headRowsKernel(shape),
    operands: {
      x: x.operand,
      ...(weight && { weight }),
      ...(angles && { cosine: angles.cos, sine: angles.sin }),
      ...(to && { y: to.y }),
    },
    uniforms: {
      xFirst: x.firstRow,
      ...(angles && { angleFirst: angles.first }),
      ...(to && {
        yFirst: to.firstRow,
        rowStride: to.rowStride / 4,
        headStride: to.headStride / 4,
        firstHead: heads.first,
        heads: heads.count,
      }),
    },
    groups: rows,
    flops: rows * shape.width * flopsPerElement,
  };
}

/** `y = a + factor·b` over rows of f32; `b` may be a single row. */
export interface SumShape {
  /** A multiple of 4. */
  readonly width: number;
  /** Whether the sum replaces `b`. */
  readonly inPlace: boolean;
}

export const sumKernel = memoised(({ width, inPlace }: SumShape): Kernel => {
  const row = new RowText(width);
  const other = (i: string) =>
    `(uniforms.bFirst + group * uniforms.bStep) * ${row.vectors}u + ${i}`;
  const target = (i: string) =>
    inPlace ? `b[${other(i)}]` : `y[(uniforms.yFirst + group) * ${row.vectors}u + ${i}]`;
  return defineKernel({
    name: `sum ${width}${inPlace ? ' in place' : ''}`,
    mode: 'exact',
    bindings: [
      vectorBinding('a', 'read', 'f32'),
      vectorBinding('b', inPlace ? 'write' : 'read', 'f32'),
      ...(inPlace ? [] : [vectorBinding('y', 'write', 'f32')]),
    ],
    uniforms: ['aFirst', 'bFirst', 'bStep', ...(inPlace ? [] : ['yFirst']), 'factor: f32'],
    threads: row.threads,
    workgroupBytes: 0,
    body: row.each(
      (_, i) => `  if (${row.inside(i)}) {
    ${target(i)} = a[(uniforms.aFirst + group) * ${row.vectors}u + ${i}] + uniforms.factor * b[${other(i)}];
  }`,
    ),
  });
});

export interface SumOperands {
  readonly a: RowView;
  readonly b: RowView;
  /** Absent: the sum replaces `b`. */
  readonly y?: RowView;
  readonly rows: number;
  readonly factor: number;
  /** Whether `b` is one row that is added to every row of `a`. */
  readonly repeated?: boolean;
}

export function sumDispatch(
  width: number,
  { a, b, y, rows, factor, repeated = false }: SumOperands,
): Dispatch {
  const { operands, uniforms } = rowOperands({ a, b, y });
  return {
    kernel: sumKernel({ width, inPlace: !y }),
    operands,
    uniforms: { ...uniforms, bStep: repeated ? 0 : 1, factor },
    groups: rows,
    flops: rows * width * flopsPerElement,
  };
}

/** A function of the elements at one place of several rows of f32. */
export interface PointwiseShape {
  /** Its family and what it computes. */
  readonly name: string;
  /** A multiple of 4. */
  readonly width: number;
  readonly inputs: number;
  /** The result in WGSL: four elements of input i are `v{i}`, number i is `uniforms.c{i}`. */
  readonly expression: string;
  readonly numbers: number;
}

/** What a {@link pointwiseKernel} computes. */
export type Formula = Pick<PointwiseShape, 'name' | 'expression'>;

/** `x·sigmoid(x)` */
export const siluFormula: Formula = {
  name: 'silu',
  expression: 'v0 / (1.0 + exp(-clamp(v0, vec4<f32>(-80.0), vec4<f32>(80.0))))',
};

/**
 * `x·Φ(x)`, with Φ by formula 7.1.26 of Abramowitz and Stegun: its largest error is 8e-8.
 */
export const geluErfFormula: Formula = {
  name: 'gelu with erf',
  expression: geluErfText(),
};

function geluErfText(): string {
  const vec = (value: number) => `vec4<f32>(${value})`;
  const z = `abs(v0) * ${Math.SQRT1_2}`;
  const t = `(1.0 / (1.0 + 0.3275911 * ${z}))`;
  const terms = [1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592];
  const series = terms.map(vec).reduce((sum, term) => `(${sum} * ${t} + ${term})`);
  // Φ of a negative number is half of erfc itself, so that small values keep their digits.
  const tail = `0.5 * ${series} * ${t} * exp(-0.5 * min(v0 * v0, ${vec(160)}))`;
  return `v0 * select(1.0 - ${tail}, ${tail}, v0 < vec4<f32>(0.0))`;
}

/** `Σ cᵢ·xᵢ` */
export function weightedSumFormula(terms: number): Formula {
  const products = Array.from({ length: terms }, (_, i) => `uniforms.c${i} * v${i}`);
  return { name: 'weighted sum', expression: products.join(' + ') };
}

export const pointwiseKernel = memoised((shape: PointwiseShape): Kernel => {
  const { name, width, inputs, expression, numbers } = shape;
  const row = new RowText(width);
  const operands = Array.from({ length: inputs }, (_, index) => `x${index}`);
  const at = (operand: string, i: string) =>
    `(uniforms.${operand}First + group) * ${row.vectors}u + ${i}`;
  return defineKernel({
    name: `${name} ${width}`,
    mode: 'exact',
    bindings: [
      ...operands.map((operand) => vectorBinding(operand, 'read', 'f32')),
      vectorBinding('y', 'write', 'f32'),
    ],
    uniforms: [
      ...operands.map((operand) => `${operand}First`),
      'yFirst',
      ...Array.from({ length: numbers }, (_, index) => `c${index}: f32`),
    ],
    threads: row.threads,
    workgroupBytes: 0,
    body: row.each(
      (_, i) => `  if (${row.inside(i)}) {
${operands.map((operand, index) => `    let v${index} = ${operand}[${at(operand, i)}];`).join('\n')}
    y[${at('y', i)}] = ${expression};
  }`,
    ),
  });
});

export interface PointwiseOperands {
  readonly inputs: readonly RowView[];
  readonly y: RowView;
  readonly rows: number;
  readonly numbers: readonly number[];
}

export function pointwiseDispatch(
  shape: Omit<PointwiseShape, 'inputs' | 'numbers'>,
  { inputs, y, rows, numbers }: PointwiseOperands,
): Dispatch {
  const { name, width, expression } = shape;
  const sizes = { inputs: inputs.length, numbers: numbers.length };
  const views = Object.fromEntries(inputs.map((view, index) => [`x${index}`, view]));
  const { operands, uniforms } = rowOperands({ ...views, y });
  const coefficients = Object.fromEntries(numbers.map((number, index) => [`c${index}`, number]));
  return {
    kernel: pointwiseKernel({ name, width, expression, ...sizes }),
    operands,
    uniforms: { ...uniforms, ...coefficients },
    groups: rows,
    flops: rows * width * flopsPerElement,
  };
}

/** Moving an element takes as long as so many operations: these kernels wait for memory. */
const flopsPerElement = 40;

/** A row in the registers of a workgroup: thread t has the vectors t, t + threads, … */
class RowText {
  readonly vectors: number;
  readonly threads: number;

  constructor(width: number) {
    if (width % 4 !== 0) throw new RangeError(`rows of ${width} elements are no vectors of four`);
    this.vectors = width / 4;
    this.threads = Math.min(256, 2 ** Math.ceil(Math.log2(Math.max(16, this.vectors))));
  }

  get workgroup() {
    return {
      threads: this.threads,
      workgroupBytes: 4 * this.threads,
      declarations: `${halfFunctions}
var<workgroup> partialSums: array<f32, ${this.threads}>;
fn sumOfRow(value: f32, thread: u32) -> f32 {
  workgroupBarrier();
  partialSums[thread] = value;
  workgroupBarrier();
  for (var half = ${this.threads / 2}u; half > 0u; half >>= 1u) {
    if (thread < half) { partialSums[thread] += partialSums[thread + half]; }
    workgroupBarrier();
  }
  return partialSums[0];
}`,
    };
  }

  /** Text for each vector of a thread, given its variable and its index in the row. */
  each(text: (variable: string, index: string) => string): string {
    return this.#parts.map((part) => text(`v${part}`, this.#index(part))).join('\n');
  }

  total(text: (variable: string) => string): string {
    return this.#parts.map((part) => text(`v${part}`)).join(' + ');
  }

  /** Whether a vector belongs to the row. */
  inside(index: string): string {
    return this.vectors % this.threads === 0 ? 'true' : `${index} < ${this.vectors}u`;
  }

  get #parts(): number[] {
    return Array.from({ length: Math.ceil(this.vectors / this.threads) }, (_, part) => part);
  }

  #index(part: number): string {
    return part === 0 ? 'thread' : `(thread + ${part * this.threads}u)`;
  }
}

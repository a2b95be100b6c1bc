import { memoised } from '../../graph';
import { type Dispatch, type RowView, rowOperands } from './compute';
import { defineKernel, integerDots, type Kernel, type Storage } from './kernel';
import { halfFunctions, load4, vectorBinding } from './text';

/** Elements of k with one scale. */
const block = 32;
/** Blocks of a workgroup; a thread computes one. */
const threads = 64;

/** Rows of activations as blocks of 32 bytes. */
export interface QuantisedRows {
  /** int8 [rows, K], four to a u32. */
  readonly x: RowView;
  /** f32 [rows, K/32] */
  readonly xScales: RowView;
}

/** The kernel of {@link quantiseDispatch}. */
export const quantiseKernel: (k: number, input: Storage) => Kernel = memoised(
  (k: number, input: Storage) => {
    if (k % block !== 0) throw new RangeError(`rows of ${k} have no whole blocks`);
    const blocks = k / block;
    const words = Array.from({ length: block / 4 }, (_, i) => i);
    return defineKernel({
      name: `quantise ${input} rows of ${k}`,
      mode: 'fast',
      bindings: [
        vectorBinding('source', 'read', input),
        { name: 'x', access: 'write', element: 'u32' },
        { name: 'xScales', access: 'write', element: 'f32' },
      ],
      uniforms: ['rows', 'sourceFirst', 'xFirst', 'xScalesFirst'],
      threads,
      workgroupBytes: 0,
      needs: [integerDots],
      declarations: input === 'f16' ? halfFunctions : '',
      body: `
  let index = group * ${threads}u + thread;
  if (index >= uniforms.rows * ${blocks}u) { return; }
  let first = (uniforms.sourceFirst * ${blocks}u + index) * ${words.length}u;
${words.map((i) => `  let v${i} = ${load4('source', input, `first + ${i}u`)};`).join('\n')}
  let most4 = ${words.map((i) => `abs(v${i})`).reduce((a, b) => `max(${a}, ${b})`)};
  let most = max(max(most4.x, most4.y), max(most4.z, most4.w));
  // Below this the scale would be a subnormal, which devices may take for zero.
  let zero = most < 1e-35;
  let inverse = select(127.0 / most, 0.0, zero);
  xScales[uniforms.xScalesFirst * ${blocks}u + index] = select(most / 127.0, 0.0, zero);
  let word = (uniforms.xFirst * ${blocks}u + index) * ${words.length}u;
${words
  .map(
    (i) =>
      `  x[word + ${i}u] = pack4xI8(clamp(vec4<i32>(round(v${i} * inverse)), vec4<i32>(-127), vec4<i32>(127)));`,
  )
  .join('\n')}`,
    });
  },
);

/**
 * Rounds rows to 8 bits with one scale per block of 32, for a fast linear.
 *
 * @param k elements of a row, a multiple of 32
 * @param input how `source` is stored
 */
export function quantiseDispatch(
  k: number,
  input: Storage,
  { rows, source, x, xScales }: QuantisedRows & { readonly rows: number; readonly source: RowView },
): Dispatch {
  const { operands, uniforms } = rowOperands({ source, x, xScales });
  return {
    kernel: quantiseKernel(k, input),
    operands,
    uniforms: { ...uniforms, rows },
    groups: Math.ceil((rows * k) / block / threads),
    flops: 4 * rows * k,
  };
}

import type { Dispatch, Span } from './compute';
import { defineKernel } from './kernel';

const threads = 256;

/**
 * `softmax(scale·x)` of the first `columns` of each row, in place; what is behind them becomes zero.
 *
 * @param x [rows, stride] in f32
 */
export function softmaxDispatch(
  x: Span,
  rows: number,
  {
    columns,
    stride,
    scale,
  }: { readonly columns: number; readonly stride: number; readonly scale: number },
): Dispatch {
  return {
    kernel: softmaxKernel,
    operands: { x },
    uniforms: { columns, stride, scale },
    groups: rows,
    flops: 8 * rows * stride,
  };
}

const reduced = (combine: (a: string, b: string) => string) => {
  const halves: string[] = [];
  for (let width = threads / 2; width >= 1; width /= 2) {
    halves.push(`  if (thread < ${width}u) {
    parts[thread] = ${combine('parts[thread]', `parts[thread + ${width}u]`)};
  }
  workgroupBarrier();`);
  }
  return halves.join('\n');
};

/** A workgroup for each row. */
export const softmaxKernel = defineKernel({
  name: 'softmax rows',
  mode: 'exact',
  bindings: [{ name: 'x', access: 'write', element: 'f32' }],
  uniforms: ['columns', 'stride', 'scale: f32'],
  threads,
  workgroupBytes: 4 * threads,
  declarations: `var<workgroup> parts: array<f32, ${threads}>;`,
  body: `
  let start = group * uniforms.stride;
  var most = -3.4e38;
  for (var c = thread; c < uniforms.columns; c += ${threads}u) {
    most = max(most, uniforms.scale * x[start + c]);
  }
  parts[thread] = most;
  workgroupBarrier();
${reduced((a, b) => `max(${a}, ${b})`)}
  let top = parts[0];
  workgroupBarrier();
  var sum = 0.0;
  for (var c = thread; c < uniforms.columns; c += ${threads}u) {
    let value = exp(uniforms.scale * x[start + c] - top);
    x[start + c] = value;
    sum += value;
  }
  parts[thread] = sum;
  workgroupBarrier();
${reduced((a, b) => `${a} + ${b}`)}
  let factor = 1.0 / parts[0];
  for (var c = thread; c < uniforms.stride; c += ${threads}u) {
    x[start + c] = select(0.0, x[start + c] * factor, c < uniforms.columns);
  }`,
});

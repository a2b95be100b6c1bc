import { memoised } from '../../graph';
import type { DeviceTensor } from '../tensor';
import type { Dispatch, Operand } from './compute';
import { defineKernel, type Kernel } from './kernel';

const threads = 256;

/** `y[head, i] = table[indices[i], head]`: a thread gathers an index for all heads. */
export const gatherHeadsKernel = memoised((heads: number): Kernel => {
  return defineKernel({
    name: `gather ${heads} heads`,
    mode: 'exact',
    bindings: [
      { name: 'table', access: 'read', element: 'f32' },
      { name: 'indices', access: 'read', element: 'i32' },
      { name: 'y', access: 'write', element: 'f32' },
    ],
    uniforms: ['count'],
    threads,
    workgroupBytes: 0,
    body: `
  let i = group * ${threads}u + thread;
  if (i >= uniforms.count) { return; }
  let row = u32(indices[i]) * ${heads}u;
  for (var head = 0u; head < ${heads}u; head++) {
    y[head * uniforms.count + i] = table[row + head];
  }`,
  });
});

export interface GatherOperands {
  /** [rows, heads] */
  readonly table: DeviceTensor | Operand;
  /** int32, [count] */
  readonly indices: DeviceTensor | Operand;
  /** f32, [heads, count] */
  readonly y: DeviceTensor | Operand;
  readonly count: number;
}

export function gatherHeadsDispatch(
  heads: number,
  { count, ...operands }: GatherOperands,
): Dispatch {
  return {
    kernel: gatherHeadsKernel(heads),
    operands,
    uniforms: { count },
    groups: Math.ceil(count / threads),
    // Moving an element takes as long as so many operations.
    flops: 40 * heads * count,
  };
}

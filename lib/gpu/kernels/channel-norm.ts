import { memoised } from '../../graph';
import type { DeviceTensor } from '../tensor';
import { type Compute, type Dispatch, rowView, type Span } from './compute';
import { defineKernel, type Kernel, type Storage } from './kernel';
import { halfFunctions, load4, storageBytes, store4, vectorBinding } from './text';

/** Invocations for each pixel. */
const lanes = 16;
const threads = 64;

/**
 * RMS norm over the channels of each pixel, its scale γ, and SiLU unless it is `plain`:
 * `silu(x / √(mean(x²) + 1e-24) · γ)`. Several dispatches where the image is larger than a binding may be.
 *
 * @param gamma [channels] in f32; channels are a multiple of 4
 */
export function channelNormDispatches(
  { limits }: Pick<Compute, 'limits'>,
  run: {
    readonly x: Span;
    readonly gamma: DeviceTensor;
    readonly y: Span;
    readonly input: Storage;
    readonly output: Storage;
    /** Without SiLU, for so many pixels of x: those of the result behind them are as the last one. */
    readonly plain?: number;
    readonly pixels: number;
    readonly channels: number;
  },
): Dispatch[] {
  const { x, y, gamma, input, output, plain = 0, pixels, channels } = run;
  if (channels % 4 !== 0) throw new RangeError(`${channels} channels are no multiple of 4`);
  const bytes = {
    x: channels * storageBytes(input),
    y: channels * storageBytes(output),
  };
  let part = pixels;
  while (part * Math.max(bytes.x, bytes.y) > limits.bindingBytes) part = Math.ceil(part / 2);
  const dispatches: Dispatch[] = [];
  for (let start = 0; start < pixels; start += part) {
    const count = Math.min(part, pixels - start);
    const sources = plain > 0 ? plain - start : count;
    const from = rowView(x, start, Math.min(count, sources), bytes.x);
    const to = rowView(y, start, count, bytes.y);
    dispatches.push({
      kernel: channelNormKernel(input, output, plain > 0),
      operands: { x: from.operand, gamma, y: to.operand },
      uniforms: {
        pixels: count,
        channels: channels / 4,
        xFirst: from.firstRow,
        yFirst: to.firstRow,
        ...(plain > 0 && { sources }),
      },
      groups: Math.ceil((count * lanes) / threads),
      flops: 10 * count * channels,
    });
  }
  return dispatches;
}

/** Sums and the norm are f32 whatever the storage. */
export const channelNormKernel = memoised(
  (input: Storage, output: Storage, plain = false): Kernel => {
    const halves: string[] = [];
    for (let width = lanes / 2; width >= 1; width /= 2) {
      halves.push(`  if (lane < ${width}u) { sums[thread] += sums[thread + ${width}u]; }
  workgroupBarrier();`);
    }
    return defineKernel({
      name: `channel norm ${input}→${output}${plain ? ' plain' : ''}`,
      mode: 'exact',
      bindings: [
        vectorBinding('x', 'read', input),
        vectorBinding('gamma', 'read', 'f32'),
        vectorBinding('y', 'write', output),
      ],
      uniforms: ['pixels', 'channels', 'xFirst', 'yFirst', ...(plain ? ['sources'] : [])],
      threads,
      workgroupBytes: 4 * threads,
      declarations: `${halfFunctions}
var<workgroup> sums: array<f32, ${threads}>;`,
      body: `
  let lane = thread % ${lanes}u;
  let pixel = group * ${threads / lanes}u + thread / ${lanes}u;
  let source = (min(pixel, ${plain ? 'uniforms.sources' : 'uniforms.pixels'} - 1u) + uniforms.xFirst) * uniforms.channels;
  var squares = 0.0;
  for (var c = lane; c < uniforms.channels; c += ${lanes}u) {
    let value = ${load4('x', input, 'source + c')};
    squares += dot(value, value);
  }
  sums[thread] = squares;
  workgroupBarrier();
${halves.join('\n')}
  let mean = sums[thread - lane] / f32(4u * uniforms.channels);
  let factor = inverseSqrt(mean + 1e-24);
  if (pixel >= uniforms.pixels) { return; }
  let result = (pixel + uniforms.yFirst) * uniforms.channels;
  for (var c = lane; c < uniforms.channels; c += ${lanes}u) {
    let normed = ${load4('x', input, 'source + c')} * factor * gamma[c];
    let value = ${plain ? 'normed' : 'normed / (1.0 + exp(min(-normed, vec4<f32>(80.0))))'};
    ${store4('y', output, 'result + c', 'value')}
  }`,
    });
  },
);

import { memoised } from '../../graph';
import type { Dispatch, Span } from './compute';
import { defineKernel, type Kernel, type Storage } from './kernel';
import { halfFunctions, load4, store4, vectorBinding } from './text';

const threads = 64;

/** A filter of its own for each channel of a frame, and of the frame before it. */
export interface DepthwiseRun {
  /** [H, W, C] each, the newest first; the one before it where there is one. C is a multiple of 4. */
  readonly x: readonly Span[];
  /** [kernel², 2C] in f32. */
  readonly weights: Span;
  /** [H, W, 2C] */
  readonly y: Span;
  readonly height: number;
  readonly width: number;
  readonly channels: number;
  /** Odd; zeros pad. */
  readonly kernel: number;
  readonly input: Storage;
  readonly output: Storage;
}

/** The dispatch of a {@link DepthwiseRun}. @throws RangeError for channels that are no multiple of 4 */
export function depthwiseDispatch(run: DepthwiseRun): Dispatch {
  const { x, weights, y, height, width, channels, kernel, input, output } = run;
  const [newest, before = newest] = x;
  if (!newest || !before) throw new TypeError('there is no frame');
  if (channels % 4 !== 0) throw new RangeError(`${channels} channels are no multiple of 4`);
  const vectors = (height * width * 2 * channels) / 4;
  return {
    kernel: depthwiseKernel(input, output),
    operands: { x0: newest, x1: before, weights, y },
    uniforms: { height, width, channels: channels / 4, kernel, frames: x.length },
    groups: Math.ceil(vectors / threads),
    flops: 8 * vectors * kernel ** 2,
  };
}

/** Four channels of a pixel for each invocation. */
export const depthwiseKernel = memoised(
  (input: Storage, output: Storage): Kernel =>
    defineKernel({
      name: `depthwise ${input}→${output}`,
      mode: 'exact',
      bindings: [
        vectorBinding('x0', 'read', input),
        vectorBinding('x1', 'read', input),
        vectorBinding('weights', 'read', 'f32'),
        vectorBinding('y', 'write', output),
      ],
      uniforms: ['height', 'width', 'channels', 'kernel', 'frames'],
      threads,
      workgroupBytes: 0,
      declarations: `${halfFunctions}
fn pixel4(age: u32, index: u32) -> vec4<f32> {
  if (age == 1u) { return ${load4('x1', input, 'index')}; }
  return ${load4('x0', input, 'index')};
}`,
      body: `
  let index = group * ${threads}u + thread;
  let filters = 2u * uniforms.channels;
  let pixel = index / filters;
  if (pixel >= uniforms.height * uniforms.width) { return; }
  let row = pixel / uniforms.width;
  let column = pixel % uniforms.width;
  let number = index % filters;
  let age = number / uniforms.channels;
  let edge = uniforms.kernel / 2u;
  var sum = vec4<f32>();
  for (var dy = 0u; dy < uniforms.kernel; dy++) {
    // What is above or to the left is far beyond the image as an unsigned number.
    let iy = row + dy - edge;
    if (iy >= uniforms.height || age >= uniforms.frames) { continue; }
    for (var dx = 0u; dx < uniforms.kernel; dx++) {
      let ix = column + dx - edge;
      if (ix >= uniforms.width) { continue; }
      let place = (iy * uniforms.width + ix) * uniforms.channels + number % uniforms.channels;
      sum += pixel4(age, place) * weights[(dy * uniforms.kernel + dx) * filters + number];
    }
  }
  ${store4('y', output, 'index', 'sum')}`,
    }),
);

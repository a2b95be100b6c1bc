import type { ConvolutionCall } from '../../onnx';
import type { Bindings, DeviceTensor } from '../backend';
import type { Compute, Dispatch } from './compute';
import type { ConvolutionVariant } from './convolution';
import { convolutionDispatches } from './convolution-run';

/** A named convolution on f32 operands, one image after another; null for one that has no kernel. */
export function convolutionCall(
  compute: Pick<Compute, 'limits'>,
  variant: ConvolutionVariant,
  { inputs, filters, kernel, stride, pads, group, bias }: ConvolutionCall['spec'],
  bound: Bindings,
  y: DeviceTensor,
): Dispatch[] | null {
  const { x, weight } = bound;
  if (group !== 1 || inputs % 4 !== 0 || !x || !weight) return null;
  const [images = 0, height = 0, width = 0] = x.dims;
  const [, outputHeight = 0, outputWidth = 0] = y.dims;
  const shape = {
    frames: 1,
    input: 'f32',
    weight: null,
    output: 'f32',
    residual: 'none',
    side: 'f32',
    bias,
    wholeVectors: filters % 4 === 0,
  } as const;
  const run = {
    x: [x],
    weights: weight,
    bias: bound.bias,
    y,
    height,
    width,
    inputs,
    filters,
    kernel,
    pads: [pads[0], pads[1]],
    stride,
    outputHeight,
    outputWidth,
  } as const;
  return Array.from({ length: images }, (_, image) =>
    convolutionDispatches(compute, variant, shape, { ...run, image }),
  ).flat();
}

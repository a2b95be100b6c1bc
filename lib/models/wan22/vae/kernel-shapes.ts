import {
  type ConvolutionShape,
  type ConvolutionVariant,
  channelNormKernel,
  convolutionKernel,
  fittedVariant,
  type Kernel,
  packKernels,
  type Storage,
} from '../../../gpu/kernels';

/**
 * The kernels of a decoder, so that they can be compiled together and before the first frame.
 *
 * @param outputs channels of the last convolution
 */
export function decoderKernels(
  variant: ConvolutionVariant,
  storage: Storage,
  outputs: number,
): Kernel[] {
  /** Storages: of the input, of the weights, of the result. */
  const shape = (
    frames: 1 | 3,
    [input, weight, output]: readonly [Storage, Storage, Storage],
    residual: ConvolutionShape['residual'] = 'none',
    side: Storage = input,
  ) => ({ frames, input, weight, output, residual, side, bias: true, wholeVectors: true }) as const;
  const s = storage;
  const shapes = [
    shape(1, ['f32', 'f32', 'f32']), // post_quant_conv
    shape(3, ['f32', 'f32', 'f32']), // conv_in
    shape(3, [s, s, s]), // the first of a residual block, time convolutions
    // The second one, at latent size and behind; the block's input is kept by the first of a level only.
    shape(3, [s, s, 'f32'], 'stored', 'f32'),
    shape(3, [s, s, 'f32'], 'same', 'f32'),
    shape(3, [s, s, s], 'stored'),
    shape(3, [s, s, s], 'same'),
    shape(3, [s, s, s], 'linear'),
    shape(3, ['f32', s, 'f32']), // time convolution at latent size
    shape(1, ['f32', s, s], 'repeated', 'f32'), // upsampling from latent size
    shape(1, [s, s, s], 'repeated'),
  ];
  const last = shape(3, [s, 'f32', 'f32']);
  return [
    ...shapes.map((each) => convolutionKernel(variant, each)),
    convolutionKernel(fittedVariant(variant, outputs), last),
    channelNormKernel('f32', s),
    channelNormKernel(s, s),
    ...packKernels,
  ];
}

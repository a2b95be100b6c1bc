import { type AttentionVariant, attentionKernel, attentionVariants } from './attention';
import type { KernelChoice } from './choice';
import type { Compute } from './compute';
import { type ConvolutionVariant, convolutionKernel, convolutionVariants } from './convolution';
import { hash, type KernelMode } from './kernel';
import { type LinearVariant, linearKernel, linearVariants } from './linear';
import { attentionShape, convolutionShape, linearShape } from './tuned-shapes';

type Device = Pick<Compute, 'features' | 'limits'>;

/** The variants of each family that fit a device, the best guess first. */
export function variantsOf(device: Device): {
  readonly linear: readonly LinearVariant[];
  readonly attention: readonly AttentionVariant[];
  readonly convolution: readonly ConvolutionVariant[];
} {
  return {
    linear: linearVariants(device),
    attention: attentionVariants(device),
    convolution: convolutionVariants(device),
  };
}

/**
 * The best guess for a device on which nothing was measured.
 *
 * @param software takes the smallest tiles: an emulated GPU compiles them in a second, the others in many
 */
export function defaultChoice(device: Device, mode: KernelMode, software = false): KernelChoice {
  const { linear, attention, convolution } = variantsOf(device);
  const at = software ? -1 : 0;
  return {
    mode,
    linear: linear.at(at) ?? null,
    attention: attention.at(at) ?? null,
    convolution: convolution.at(at) ?? null,
  };
}

/** The modes that a device has kernels of. */
export function modesOf(_device: Device): readonly KernelMode[] {
  return ['exact'];
}

/** Names the texts of the kernels: what was measured with others is not valid any more. */
export function kernelSetOf(device: Device): string {
  const { linear, attention, convolution } = variantsOf(device);
  return hash(
    [
      ...linear.map((variant) => linearKernel(variant, linearShape('small'))),
      ...attention.map((variant) => attentionKernel(variant, attentionShape('none'))),
      ...convolution.map((variant) => convolutionKernel(variant, convolutionShape('f32'))),
    ]
      .map(({ key }) => key)
      .join(),
  );
}

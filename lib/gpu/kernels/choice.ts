import type { AttentionVariant } from './attention';
import type { ConvolutionVariant } from './convolution';
import type { KernelMode, Storage } from './kernel';
import type { LinearVariant } from './linear';

/**
 * The variants of the kernels that a device uses: the tuner's winners, or the best guess before it ran. Plain
 * data, so that it can be stored. Null where a family has no usable variant: then the runtime computes its calls.
 */
export interface KernelChoice {
  readonly mode: KernelMode;
  /** How activations lie between two kernels; f16 when absent. Sums and residual streams are f32. */
  readonly storage?: Storage;
  readonly linear: LinearVariant | null;
  readonly attention: AttentionVariant | null;
  readonly convolution: ConvolutionVariant | null;
  /**
   * In the mode `fast`, for what it computes: the layers and the self-attention of the transformer's blocks. The
   * families above compute the rest, and this too where it is null.
   */
  readonly fastLinear?: LinearVariant | null;
  readonly fastAttention?: AttentionVariant | null;
}

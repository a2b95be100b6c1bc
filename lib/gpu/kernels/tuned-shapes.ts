import type { DeviceTensor } from '../tensor';
import type { HeadView } from './attention';
import type { AttentionShape, ConvolutionShape, LinearShape } from './choice';
import type { RowView } from './compute';
import type { Storage } from './kernel';
import type { FastLinearShape } from './linear-dp4a';

/** Shapes of linear kernels that the tuner runs: two odd ones to be checked, and that of the model. */
export function linearShape(use: 'small' | 'clamped' | 'timed'): LinearShape {
  const [k, n] = use === 'timed' ? [3072, 3072] : use === 'small' ? [96, 202] : [288, 76];
  return {
    k,
    n,
    weight: 'q8',
    input: 'f16',
    output: use === 'small' ? 'f32' : 'f16',
    bias: true,
    rank: 0,
    epilogue: 'none',
  };
}

/** The same of fast linear kernels; the clamped one has a weight in 4 bits. */
export function fastLinearShape(use: 'small' | 'clamped' | 'timed'): FastLinearShape {
  return { ...linearShape(use), weight: use === 'clamped' ? 'q4' : 'q8' };
}

/** The shape of self-attention, and with a weight of the last key that of cross-attention. */
export function attentionShape(bias: 'none' | 'last'): AttentionShape {
  return { headSize: 128, q: 'f16', kv: 'f16', out: 'f16', bias };
}

/** The shape of a causal convolution. */
export function convolutionShape(output: Storage): ConvolutionShape {
  return {
    frames: 3,
    input: 'f16',
    weight: 'f16',
    output,
    residual: 'none',
    side: 'f16',
    bias: true,
    activation: null,
    shuffled: false,
    wholeVectors: true,
  };
}

interface ImageSize {
  readonly height: number;
  readonly width: number;
  readonly channels: number;
}

/** Sizes of a 3×3 convolution that keeps those of its image. */
export function sameSize({ height, width, channels }: ImageSize) {
  const sizes = { height, width, inputs: channels, filters: channels };
  const around = { kernel: [3, 3], pads: [1, 1] } as const;
  return { ...sizes, ...around, outputHeight: height, outputWidth: width };
}

/** All rows of a tensor. */
export function wholeRows(tensor: DeviceTensor): RowView {
  return { operand: { tensor }, firstRow: 0 };
}

/** Heads that lie one behind the other in each row. */
export function interleaved(tensor: DeviceTensor, heads: number, size: number): HeadView {
  return { ...wholeRows(tensor), headStride: size, rowStride: heads * size };
}

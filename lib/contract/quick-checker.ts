import type { Safety } from './safety';

/**
 * The quick checker: a small classifier that comes with Kinora and judges wherever the downloaded one is not
 * there. Its two files lie in `public/nsfwjs/`.
 */
export const quickChecker = {
  /** Its name in the record of a check. */
  model: 'nsfwjs-mobilenet-v2',
  threshold: 0.6,
  /** For frames of the bundled model: soft pictures of anything score higher. */
  softThreshold: 0.85,
  /** One byte per weight, as in npm's nsfwjs 4.4.0. */
  weights: {
    file: 'weights.bin',
    sha256: '8e7dddbb16acacc1bf1601b1b8a761e730ff934b7f2d7771312b2f000e5f5f13',
  },
  /** Name, shape and range of each tensor, in the order of the weights. */
  tensors: {
    file: 'tensors.json',
    sha256: '3d817f3ab4be2033241ed807aff477ebec6208b83b47314050a27b43e78c0dd8',
  },
} as const;

/** Whether a record comes from the quick checker. */
export const isQuickCheck = ({ model }: Pick<Safety, 'model'>): boolean =>
  model === quickChecker.model;

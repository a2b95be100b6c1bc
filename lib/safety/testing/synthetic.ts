/** The default checker at its real size, with random weights, and what a check of a video takes. */
import { elementCount } from '../../gpu';
import { patchValues, type VisionTransformer, visionRows } from '../../graph';
import { gaussianNoise } from '../../pipeline/noise';
import { layOutSquares } from '../../pipeline/vision/squares';
import { sampledFrames } from '../check';
import { parseCheckerConfig } from '../checker-config';
import { storedShapes } from '../checker-weights';
import type { VitNetwork } from '../vit';

/** `Marqo/nsfw-image-detection-384` (timm's `vit_tiny_patch16_384`): 5.6 million parameters. */
export const defaultArchitecture: VisionTransformer = {
  imageSize: 384,
  patchSize: 16,
  channels: 192,
  layers: 12,
  heads: 3,
  hidden: 768,
  epsilon: 1e-6,
  patchBias: true,
  preNorm: false,
};

/** Floating-point operations of one square, two per multiplication with its addition; norms are not counted. */
export function squareFlops(vit: VisionTransformer): number {
  const { channels: d, hidden } = vit;
  const tokens = visionRows(vit);
  const block = 2 * tokens * (4 * d * d + 2 * d * hidden) + 4 * tokens * tokens * d;
  return 2 * (tokens - 1) * patchValues(vit) * d + vit.layers * block + 4 * d;
}

/** What the default checker takes for a video of a size. */
export function checkCost(video: {
  readonly width: number;
  readonly height: number;
  readonly frames: number;
}) {
  const { imageSize: size } = defaultArchitecture;
  const { offsets } = layOutSquares(video, { size, fit: 'cover' });
  const squares = offsets.length * sampledFrames(video.frames).length;
  return {
    squares,
    flop: squares * squareFlops(defaultArchitecture),
    bytes: squares * 3 * size ** 2,
  };
}

/** The network at its real size with random weights, the same ones each time. */
export function syntheticNetwork(): VitNetwork {
  const { imageSize } = defaultArchitecture;
  const config = parseCheckerConfig({
    architecture: 'vit_tiny_patch16_384',
    pretrained_cfg: {
      input_size: [3, imageSize, imageSize],
      interpolation: 'bicubic',
      crop_pct: 1,
      mean: [0.5, 0.5, 0.5],
      std: [0.5, 0.5, 0.5],
      label_names: ['NSFW', 'SFW'],
    },
  });
  const shapes = [...storedShapes('timm', defaultArchitecture)];
  return {
    config,
    vit: defaultArchitecture,
    checkpoint: {
      async read(name) {
        const index = shapes.findIndex(([known]) => known === name);
        const [, dims = []] = shapes[index] ?? [];
        return noise(
          1 + index,
          elementCount(dims),
          dims.length > 1 ? elementCount(dims.slice(1)) : 1,
        );
      },
    },
  };
}

/** Normal numbers with a deviation of 1/√fanIn, so that activations neither grow nor vanish. */
function noise(stream: number, count: number, fanIn: number): Float32Array<ArrayBuffer> {
  return gaussianNoise({ seed: 1, stream, draw: 0, count }).map(
    (value) => value / Math.sqrt(fanIn),
  );
}

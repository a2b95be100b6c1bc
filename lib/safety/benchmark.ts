import { type Backend, elementCount } from '../gpu';
import {
  type BenchmarkOptions,
  type BenchmarkStage,
  measure,
  summarise,
} from '../pipeline/benchmark';
import { metered } from '../pipeline/benchmark/meter';
import { gaussianNoise } from '../pipeline/noise';
import { sampledFrames } from './check';
import { batchSize, ClassifierRun } from './classifier';
import { parseCheckerConfig } from './config';
import { layOutSquares } from './preprocess';
import { squareFlops, type VitNetwork, vitClassifier } from './vit';
import { type Architecture, weightShapes } from './weights';

/** `Marqo/nsfw-image-detection-384` (timm's `vit_tiny_patch16_384`): 5.6 million parameters. */
export const defaultArchitecture: Architecture = {
  imageSize: 384,
  patchSize: 16,
  channels: 192,
  blocks: 12,
  heads: 3,
  hidden: 768,
  epsilon: 1e-6,
};

/** What a check of a video takes. */
export interface CheckCost {
  readonly squares: number;
  readonly flop: number;
  /** Of the squares that are kept until decoding is over. */
  readonly bytes: number;
}

/** What the default checker takes for a video of a size. */
export function checkCost(video: {
  readonly width: number;
  readonly height: number;
  readonly frames: number;
}): CheckCost {
  const { imageSize: size } = defaultArchitecture;
  const { offsets } = layOutSquares(video, { size, fit: 'cover' });
  const squares = offsets.length * sampledFrames(video.frames).length;
  return {
    squares,
    flop: squares * squareFlops(defaultArchitecture),
    bytes: squares * 3 * size ** 2,
  };
}

/** The checker's network at its real size with random weights, for a full batch or as few squares as a small clip has. */
export const checkerBenchmark = ({
  passes,
  tokens,
}: Pick<BenchmarkOptions, 'passes' | 'tokens'>): BenchmarkStage => ({
  name: 'safety checker',
  async run(backend: Backend) {
    const { imageSize, patchSize } = defaultArchitecture;
    const squares = Math.min(batchSize, Math.ceil(tokens / (imageSize / patchSize) ** 2));
    const meter = metered(backend);
    backend.resetPeaks();
    const classifier = vitClassifier(syntheticNetwork());
    const { signal } = new AbortController();
    const run = await ClassifierRun.start(classifier, meter.backend, squares, signal);
    try {
      const pixels = noise(0, squares * 3 * imageSize ** 2, 1);
      const records = await measure(meter, passes, () => run.compute(pixels));
      const flop = squares * squareFlops(defaultArchitecture);
      const { peakBytes } = backend;
      const name = `safety checker, ${squares} ${squares === 1 ? 'square' : 'squares'}`;
      return [summarise(name, records, () => true, { flop, layers: 1, peakBytes })];
    } finally {
      run.dispose();
      await backend.releaseSessions();
    }
  },
});

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
  const shapes = [...weightShapes(defaultArchitecture)];
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

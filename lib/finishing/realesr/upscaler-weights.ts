import { at } from '../../contract';
import type { VaeCheckpoint } from '../../models/wan/vae/vae-weights';
import { type Checkpoint, checkTensors, withAliases } from '../../weights';
import {
  type CompactConfig,
  type Factor,
  lastLayer,
  layerName,
  nearestLayer,
  slopeName,
} from './upscaler-network';

/** Pixels that the file's last convolution makes of one, along a side. */
const ownFactor = 4;

/** A checkpoint by the names `body.N…`, which are behind `params.` in the authors' file. */
export function plainNames(checkpoint: Checkpoint): Checkpoint {
  const names = [...checkpoint.names()].filter((name) => name.startsWith('params.'));
  return withAliases(
    checkpoint,
    new Map(names.map((name) => [name.slice('params.'.length), name])),
  );
}

/**
 * Sizes of a file's network.
 *
 * @param checkpoint by {@link plainNames}
 * @throws KinoraError `TENSOR_MISSING`, `TENSOR_SHAPE` for a file that is not SRVGGNetCompact of factor 4
 */
export function compactConfig(checkpoint: Checkpoint): CompactConfig {
  const [width = 0] = checkpoint.shape('body.0.weight');
  let convolutions = 2;
  while (checkpoint.has(`${layerName(convolutions)}.weight`)) convolutions++;
  const expected = new Map<string, readonly number[]>();
  for (let i = 0; i < convolutions; i++) {
    const isLast = i === convolutions - 1;
    const filters = isLast ? 3 * ownFactor ** 2 : width;
    expected.set(`${layerName(i)}.weight`, [filters, i === 0 ? 3 : width, 3, 3]);
    expected.set(`${layerName(i)}.bias`, [filters]);
    if (!isLast) expected.set(`${slopeName(i)}.weight`, [width]);
  }
  checkTensors(checkpoint, expected, 'upscaler');
  return { width, convolutions };
}

/** A tensor that is made of the file's. */
interface DerivedTensor {
  readonly shape: readonly number[];
  readonly data: () => Promise<Float32Array>;
}

/** The tensors that the graph's layers name. */
export function compactWeights(
  checkpoint: Checkpoint,
  { width, convolutions }: CompactConfig,
  factor: Factor,
): VaeCheckpoint {
  const filters = 3 * factor ** 2;
  const last = layerName(convolutions - 1);
  const derived = new Map<string, DerivedTensor>([
    [
      'body.0.weight',
      {
        shape: [width, 4, 3, 3],
        data: async () => withZeroChannel(await checkpoint.read('body.0.weight')),
      },
    ],
    [
      `${lastLayer}.weight`,
      {
        shape: [filters, width, 3, 3],
        data: async () => reduced(await checkpoint.read(`${last}.weight`), factor),
      },
    ],
    [
      `${lastLayer}.bias`,
      {
        shape: [filters],
        data: async () => reduced(await checkpoint.read(`${last}.bias`), factor),
      },
    ],
    [`${nearestLayer}.weight`, { shape: [filters, 4, 1, 1], data: async () => copies(factor) }],
    [`${nearestLayer}.bias`, { shape: [filters], data: async () => new Float32Array(filters) }],
  ]);
  const read = (name: string) => derived.get(name)?.data() ?? checkpoint.read(name);
  return {
    has: (name) => derived.has(name) || checkpoint.has(name),
    shape: (name) => derived.get(name)?.shape ?? checkpoint.shape(name),
    bytes: () => 0,
    read,
    readRows: () => Promise.reject(new TypeError('the layers have one tap each')),
  };
}

/** [C, 3, 3, 3] → [C, 4, 3, 3] */
function withZeroChannel(weight: Float32Array): Float32Array {
  const filters = weight.length / 27;
  const out = new Float32Array(filters * 36);
  for (let i = 0; i < filters; i++) out.set(weight.subarray(27 * i, 27 * (i + 1)), 36 * i);
  return out;
}

/**
 * Rows (colour, row, column) of a 4×4 block [48, …] as those of a block of `factor`: means of the pixels that become
 * one. The mean of the results is that of the weights.
 */
function reduced(rows: Float32Array, factor: Factor): Float32Array {
  const size = rows.length / (3 * ownFactor ** 2);
  const step = ownFactor / factor;
  const out = new Float32Array(3 * factor ** 2 * size);
  for (let row = 0; row < 3 * ownFactor; row++) {
    for (let column = 0; column < ownFactor; column++) {
      const from = (row * ownFactor + column) * size;
      const to = (Math.floor(row / step) * factor + Math.floor(column / step)) * size;
      for (let k = 0; k < size; k++) out[to + k] = at(out, to + k) + at(rows, from + k) / step ** 2;
    }
  }
  return out;
}

/** A pixel's colours to each of the pixels that it becomes: [3·f², 4]. */
function copies(factor: Factor): Float32Array {
  const out = new Float32Array(3 * factor ** 2 * 4);
  for (let i = 0; i < 3 * factor ** 2; i++) out[4 * i + Math.floor(i / factor ** 2)] = 1;
  return out;
}

import { at } from '../../../contract';
import { type DeviceTensor, elementCount, type Scope } from '../../../gpu';
import type { ConvolutionLayer } from '../../../graph';
import type { Checkpoint } from '../../../weights';

type Tensors = Readonly<Record<string, DeviceTensor<'float32'>>>;

/** The reads of a checkpoint that the VAE needs. */
export type VaeCheckpoint = Pick<Checkpoint, 'has' | 'read' | 'readRows' | 'shape' | 'bytes'>;

export interface VaeLoadOptions {
  /** Called with the stored size of each tensor that was read. */
  readonly onBytes?: ((bytes: number) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Names under which the store keeps kernels in the order in which they are used, so that nothing is computed while
 * loading. A checkpoint has either these or the kernels themselves.
 */
export const derived = {
  /** {@link newestFirst}: [taps, Co, Ci, k, k]. */
  taps: (convolution: string) => `${convolution}.weight#taps`,
  /** {@link allPhases}: [4, Co, Ci, 2, 2]. */
  phases: (convolution: string) => `${convolution}.weight#phases`,
  /** {@link transposed}: [Ci, Co]. */
  transposed: (convolution: string) => `${convolution}.weight#transposed`,
} as const;

/** Reads tensors of the VAE, in f32. */
export class VaeReader {
  constructor(
    readonly checkpoint: VaeCheckpoint,
    readonly options: VaeLoadOptions = {},
  ) {}

  async read(name: string): Promise<Float32Array> {
    this.options.signal?.throwIfAborted();
    const data = await this.checkpoint.read(name);
    this.options.onBytes?.(this.checkpoint.bytes(name));
    return data;
  }

  /** A part of a bias. */
  async bias({ name, part: { index }, filters }: ConvolutionLayer): Promise<Float32Array> {
    return (await this.read(`${name}.bias`)).subarray(index * filters, (index + 1) * filters);
  }

  /** The newest time taps of a kernel, the newest first: [taps, Co, Ci, k, k] of all its parts. */
  async taps({ name, taps }: ConvolutionLayer): Promise<Float32Array> {
    const { checkpoint } = this;
    const stored = derived.taps(name);
    if (checkpoint.has(stored)) {
      this.options.signal?.throwIfAborted();
      const rows = Array.from({ length: taps }, (_, age) => age);
      const data = await checkpoint.readRows(stored, rows);
      this.options.onBytes?.((checkpoint.bytes(stored) * taps) / at(checkpoint.shape(stored), 0));
      return data;
    }
    const weight = `${name}.weight`;
    const [filters = 0, inputs = 0, ...rest] = checkpoint.shape(weight);
    const [depth = 1, ...kernel] = rest.length > 2 ? rest : [1, ...rest];
    const data = await this.read(weight);
    return newestFirst(data, filters * inputs, depth, elementCount(kernel), taps);
  }

  /** The 3×3 convolution [C, C, 3, 3] behind a nearest ×2 as four 2×2 convolutions, [4, C, C, 2, 2]. */
  async phases({ name, filters, inputs }: ConvolutionLayer): Promise<Float32Array> {
    const stored = derived.phases(name);
    if (this.checkpoint.has(stored)) return this.read(stored);
    return allPhases(await this.read(`${name}.weight`), filters * inputs);
  }

  /** A 1×1 convolution [N, K, 1, …] as matrix [K, N] for a product from the left. */
  async shortcut({ name, filters, inputs }: ConvolutionLayer): Promise<Float32Array> {
    const stored = derived.transposed(name);
    if (this.checkpoint.has(stored)) return this.read(stored);
    return transposed(await this.read(`${name}.weight`), filters, inputs);
  }
}

/**
 * Time taps of filters [count, depth, size] as [taps, count, size]: first the current frame's, which is
 * the last one of the file, then those of the frames before it.
 */
export function newestFirst(
  data: Float32Array,
  count: number,
  depth: number,
  size: number,
  taps: number,
): Float32Array {
  const out = new Float32Array(taps * count * size);
  for (let age = 0; age < taps; age++) {
    for (let i = 0; i < count; i++) {
      const source = (i * depth + depth - 1 - age) * size;
      const target = (age * count + i) * size;
      for (let k = 0; k < size; k++) out[target + k] = data[source + k] as number;
    }
  }
  return out;
}

/** [rows, columns] → [columns, rows]. */
export function transposed(data: Float32Array, rows: number, columns: number): Float32Array {
  const out = new Float32Array(data.length);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      out[column * rows + row] = data[row * columns + column] as number;
    }
  }
  return out;
}

/**
 * Filters of a frame's share of AvgDown3D: a convolution without overlap. Blocks of (time, row, column) are folded into
 * channels in that order and neighbouring ones averaged.
 *
 * @returns [filters, inputs, kernel, kernel]
 */
export function averagingWeights({
  inputs,
  filters,
  kernel,
  average,
}: ConvolutionLayer): Float32Array {
  const { time = 0, factorTime = 1 } = average ?? {};
  const area = kernel * kernel;
  const group = (inputs * factorTime * area) / filters;
  const weights = new Float32Array(filters * inputs * area);
  for (let c = 0; c < inputs; c++) {
    for (let pixel = 0; pixel < area; pixel++) {
      const folded = (c * factorTime + time) * area + pixel;
      const filter = Math.floor(folded / group);
      weights[(filter * inputs + c) * area + pixel] = 1 / group;
    }
  }
  return weights;
}

/** Uploads {@link allPhases} as `phase00` … `phase11`, [filters, inputs, 2, 2] each. */
export function uploadPhases(
  scope: Scope,
  phases: Float32Array,
  filters: number,
  inputs: number,
): Tensors {
  const dims = [filters, inputs, 2, 2];
  const size = elementCount(dims);
  return Object.fromEntries(
    [0, 1, 2, 3].map((phase) => {
      const weight = phases.subarray(phase * size, (phase + 1) * size);
      return [`phase${phase >> 1}${phase & 1}`, scope.float32(dims, 'weights', weight)];
    }),
  );
}

/** The four {@link phaseWeights} of a kernel [count, 3, 3], one after another: [4, count, 2, 2]. */
export function allPhases(data: Float32Array, count: number): Float32Array {
  const out = new Float32Array(4 * count * 4);
  for (const phase of [0, 1, 2, 3]) {
    const [row, column] = [phase >> 1, phase & 1] as [0 | 1, 0 | 1];
    out.set(phaseWeights(data, count, row, column), phase * count * 4);
  }
  return out;
}

/**
 * What a 3×3 kernel behind a nearest ×2 does for pixel (row, column) of each 2×2 block, as a 2×2
 * kernel on the small image: taps that see the same small pixel are summed.
 *
 * @param data [count, 3, 3]
 */
function phaseWeights(data: Float32Array, count: number, row: 0 | 1, column: 0 | 1): Float32Array {
  const out = new Float32Array(count * 4);
  for (let i = 0; i < count; i++) {
    for (let dy = 0; dy < 3; dy++) {
      for (let dx = 0; dx < 3; dx++) {
        // Tap −1, 0, +1 at large row 2y+row sees small row y + floor((row + tap)/2).
        const y = Math.floor((row + dy - 1) / 2) + 1 - row;
        const x = Math.floor((column + dx - 1) / 2) + 1 - column;
        const target = i * 4 + y * 2 + x;
        out[target] = (out[target] as number) + (data[i * 9 + dy * 3 + dx] as number);
      }
    }
  }
  return out;
}

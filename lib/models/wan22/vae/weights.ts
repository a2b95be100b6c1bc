import { at } from '../../../contract';
import { type DeviceTensor, elementCount, type Scope } from '../../../gpu';
import type { Checkpoint } from '../../../weights';
import { joinsTaps } from './graphs';

type Tensors = Readonly<Record<string, DeviceTensor<'float32'>>>;

/** What the VAE reads of a checkpoint. */
export type VaeCheckpoint = Pick<Checkpoint, 'has' | 'read' | 'readRows' | 'shape' | 'bytes'>;

export interface VaeLoadOptions {
  /** Called with the stored size of each tensor that was read. */
  readonly onBytes?: ((bytes: number) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Names under which the store keeps kernels in the order of these graphs, so that nothing is computed while
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

/** Reads the VAE's tensors into device memory of a scope, in the form that the graphs want. */
export class VaeLoader {
  constructor(
    readonly scope: Scope,
    readonly checkpoint: VaeCheckpoint,
    readonly options: VaeLoadOptions = {},
  ) {}

  /** A tensor of the checkpoint, in f32. */
  async read(name: string): Promise<Float32Array> {
    this.options.signal?.throwIfAborted();
    const data = await this.checkpoint.read(name);
    this.options.onBytes?.(this.checkpoint.bytes(name));
    return data;
  }

  #upload(dims: readonly number[], data: Float32Array): DeviceTensor<'float32'> {
    return this.scope.float32(dims, 'weights', data);
  }

  /** Scale of an RMS norm, [C]. */
  async gamma(name: string): Promise<Tensors> {
    const data = await this.read(name);
    return { gamma: this.#upload([data.length], data) };
  }

  /**
   * A causal convolution [Co, Ci, 3, k, k], one 2-D convolution per time tap.
   *
   * @param taps 1 reads the current frame's tap only: all there is for a first frame
   * @param part filters `[part·count/of, (part+1)·count/of)` only
   */
  async convolution(name: string, taps: 1 | 3, part = 0, of = 1): Promise<Tensors> {
    const { data, shape } = await this.#taps(name, taps);
    const [inputs, kernel] = [at(shape, 1), shape.slice(2)];
    const filters = at(shape, 0) / of;
    const share = filters * inputs * elementCount(kernel);
    const bias = (await this.read(`${name}.bias`)).subarray(part * filters, (part + 1) * filters);
    const tap = (age: number) =>
      data.subarray((age * of + part) * share, (age * of + part + 1) * share);
    if (taps === 3 && joinsTaps(filters)) {
      const joined = new Float32Array(3 * share);
      for (const age of [0, 1, 2]) joined.set(tap(age), age * share);
      const paddedBias = new Float32Array(3 * filters);
      paddedBias.set(bias);
      return {
        bias: this.#upload([3 * filters], paddedBias),
        taps: this.#upload([3 * filters, inputs, ...kernel], joined),
      };
    }
    const tensors: Record<string, DeviceTensor<'float32'>> = {
      bias: this.#upload([filters], bias),
    };
    for (let age = 0; age < taps; age++) {
      tensors[`tap${2 - age}`] = this.#upload([filters, inputs, ...kernel], tap(age));
    }
    return tensors;
  }

  /** The newest time taps of a kernel, the newest first, and the shape of one of them. */
  async #taps(
    name: string,
    taps: 1 | 3,
  ): Promise<{ data: Float32Array; shape: readonly number[] }> {
    const stored = derived.taps(name);
    if (this.checkpoint.has(stored)) {
      this.options.signal?.throwIfAborted();
      const shape = this.checkpoint.shape(stored);
      const rows = Array.from({ length: taps }, (_, age) => age);
      const data = await this.checkpoint.readRows(stored, rows);
      this.options.onBytes?.((this.checkpoint.bytes(stored) * taps) / at(shape, 0));
      return { data, shape: shape.slice(1) };
    }
    const weight = `${name}.weight`;
    const shape = this.checkpoint.shape(weight);
    const [filters, inputs, depth] = [at(shape, 0), at(shape, 1), at(shape, 2)];
    const kernel = shape.slice(3);
    const size = elementCount(kernel);
    const data = newestFirst(await this.read(weight), filters * inputs, depth, size, taps);
    return { data, shape: [filters, inputs, ...kernel] };
  }

  /** The 3×3 convolution [C, C, 3, 3] behind a nearest ×2 as four 2×2 convolutions. */
  async phases(name: string): Promise<Tensors> {
    const stored = derived.phases(name);
    const isStored = this.checkpoint.has(stored);
    const shape = this.checkpoint.shape(isStored ? stored : `${name}.weight`);
    const [filters, inputs] = isStored
      ? [at(shape, 1), at(shape, 2)]
      : [at(shape, 0), at(shape, 1)];
    const data = isStored
      ? await this.read(stored)
      : allPhases(await this.read(`${name}.weight`), filters * inputs);
    const bias = await this.read(`${name}.bias`);
    return {
      ...uploadPhases(this.scope, data, filters, inputs),
      bias: this.#upload([filters], bias),
    };
  }

  /** A 2-D convolution in the file's order. */
  async plain(name: string): Promise<Tensors> {
    return {
      weight: this.#upload(
        this.checkpoint.shape(`${name}.weight`),
        await this.read(`${name}.weight`),
      ),
      bias: this.#upload(this.checkpoint.shape(`${name}.bias`), await this.read(`${name}.bias`)),
    };
  }

  /** A 1×1 convolution [N, K, 1, …] as matrix [K, N] for a product from the left. */
  async shortcut(name: string): Promise<Tensors> {
    const stored = derived.transposed(name);
    const isStored = this.checkpoint.has(stored);
    const shape = this.checkpoint.shape(isStored ? stored : `${name}.weight`);
    const [filters, inputs] = isStored
      ? [at(shape, 1), at(shape, 0)]
      : [at(shape, 0), at(shape, 1)];
    const data = isStored
      ? await this.read(stored)
      : transposed(await this.read(`${name}.weight`), filters, inputs);
    return {
      residualWeight: this.#upload([inputs, filters], data),
      residualBias: this.#upload([filters], await this.read(`${name}.bias`)),
    };
  }

  /** Norm and the q, k, v rows of the attention's one matrix, then its output projection. */
  async attention(name: string): Promise<{ inward: Tensors; outward: Tensors }> {
    const shape = this.checkpoint.shape(`${name}.to_qkv.weight`);
    const [rows, channels] = [at(shape, 0), at(shape, 1)];
    const weight = await this.read(`${name}.to_qkv.weight`);
    const bias = await this.read(`${name}.to_qkv.bias`);
    const inward: Record<string, DeviceTensor<'float32'>> = {
      ...(await this.gamma(`${name}.norm.gamma`)),
    };
    const third = rows / 3;
    for (const [i, part] of ['q', 'k', 'v'].entries()) {
      inward[`${part}Weight`] = this.#upload(
        [third, channels],
        weight.slice(i * third * channels, (i + 1) * third * channels),
      );
      inward[`${part}Bias`] = this.#upload([third], bias.slice(i * third, (i + 1) * third));
    }
    const outward = {
      weight: this.#upload([channels, third], await this.read(`${name}.proj.weight`)),
      bias: this.#upload([channels], await this.read(`${name}.proj.bias`)),
    };
    return { inward, outward };
  }

  /** The first `rows` filters of a 1×1×1 convolution. */
  async pointwise(name: string, rows: number): Promise<Tensors> {
    const inputs = at(this.checkpoint.shape(`${name}.weight`), 1);
    const weight = await this.read(`${name}.weight`);
    const bias = await this.read(`${name}.bias`);
    return {
      tap2: this.#upload([rows, inputs, 1, 1], weight.slice(0, rows * inputs)),
      bias: this.#upload([rows], bias.slice(0, rows)),
    };
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

import type { Backend } from './backend';
import type { Category, DeviceTensor, ReadableTensor } from './tensor';

/**
 * Reuses tensors: one is created only when none of its shape and type is free, so that after the first frames
 * nothing is allocated any more.
 */
export class TensorPool {
  readonly #all = new Set<ReadableTensor>();
  readonly #free = new Map<string, ReadableTensor[]>();

  constructor(
    readonly backend: Backend,
    readonly category: Category,
  ) {}

  /** A tensor of unknown content. */
  take(dims: readonly number[]): DeviceTensor<'float32'>;
  take(dims: readonly number[], dtype: ReadableTensor['dtype']): ReadableTensor;
  take(dims: readonly number[], dtype: ReadableTensor['dtype'] = 'float32'): ReadableTensor {
    return this.#free.get(keyOf(dtype, dims))?.pop() ?? this.#create(dims, dtype);
  }

  /** A new tensor; its content is zero. */
  zero(dims: readonly number[]): DeviceTensor<'float32'> {
    return this.#create(dims, 'float32');
  }

  #create<T extends ReadableTensor['dtype']>(dims: readonly number[], dtype: T) {
    const tensor = this.backend.tensor(dtype, dims, this.category);
    this.#all.add(tensor as ReadableTensor);
    return tensor;
  }

  /** Returns tensors for the next {@link take}. */
  give(...tensors: readonly ReadableTensor[]): void {
    for (const tensor of tensors) {
      const key = keyOf(tensor.dtype, tensor.dims);
      const free = this.#free.get(key);
      if (free) free.push(tensor);
      else this.#free.set(key, [tensor]);
    }
  }

  /** Returns all tensors, also those that are in use. */
  reclaim(): void {
    this.#free.clear();
    this.give(...this.#all);
  }

  dispose(): void {
    for (const tensor of this.#all) tensor.dispose();
    this.#all.clear();
    this.#free.clear();
  }
}

const keyOf = (dtype: string, dims: readonly number[]) => `${dtype} ${dims.join()}`;

/** Reads that wait together, of frames that come of one latent frame. */
const mostKept = 4;

/** Buffers of readbacks. They are kept for the next ones, and grow to the largest so far. */
export class StagingPool<T extends { readonly size: number; destroy(): unknown }> {
  #free: T[] = [];

  constructor(readonly create: (bytes: number) => T) {}

  take(bytes: number): T {
    const index = this.#free.findIndex(({ size }) => size >= bytes);
    // One that is too small gives way.
    const [kept] = this.#free.splice(Math.max(0, index), 1);
    if (kept && index >= 0) return kept;
    kept?.destroy();
    return this.create(bytes);
  }

  give(buffer: T): void {
    if (this.#free.length < mostKept) this.#free.push(buffer);
    else buffer.destroy();
  }

  clear(): void {
    for (const buffer of this.#free) buffer.destroy();
    this.#free = [];
  }
}

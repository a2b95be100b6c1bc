import type { Backend, DeviceTensor } from './backend';
import type { Category } from './ledger';

/**
 * Reuses tensors: one is created only when none of its shape is free, so that after the first frames
 * nothing is allocated any more.
 */
export class TensorPool {
  readonly #all = new Set<DeviceTensor<'float32'>>();
  readonly #free = new Map<string, DeviceTensor<'float32'>[]>();

  constructor(
    readonly backend: Backend,
    readonly category: Category,
  ) {}

  /** A tensor of unknown content. */
  take(dims: readonly number[]): DeviceTensor<'float32'> {
    return this.#free.get(dims.join())?.pop() ?? this.zero(dims);
  }

  /** A new tensor; its content is zero. */
  zero(dims: readonly number[]): DeviceTensor<'float32'> {
    const tensor = this.backend.tensor('float32', dims, this.category);
    this.#all.add(tensor);
    return tensor;
  }

  /** Returns tensors for the next {@link take}. */
  give(...tensors: readonly DeviceTensor<'float32'>[]): void {
    for (const tensor of tensors) {
      const key = tensor.dims.join();
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

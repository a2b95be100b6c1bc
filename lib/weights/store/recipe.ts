import type { Precision } from '../../contract';

/** How a tensor lies in the store. */
export type StoredForm =
  /** Linear weight in blocks of 32 with f32 scales; `f32` where its rows are no multiple of 32. */
  | Exclude<Precision, 'f32'>
  | 'f32'
  /** F32, F16 and BF16 as they come; quantised types as 8-bit blocks: tables and kernels. */
  | 'compact';

/** What becomes of one tensor. */
export interface TensorRecipe {
  /** Its name in the store, usually the tensor's own. */
  readonly name: string;
  /** Name in the checkpoint, by diffusers. */
  readonly source: string;
  /** Shape of the source, as the architecture wants it. */
  readonly shape: readonly number[];
  readonly form: StoredForm;
  /** File of the component that it is kept in: one per layer, so that a layer is one read. */
  readonly pack: string;
  /**
   * A new order of the elements, for kernels that the engine wants otherwise than the file has them.
   * The tensor is then converted whole; without it, row by row.
   */
  readonly reorder?: {
    readonly shape: readonly number[];
    readonly apply: (data: Float32Array) => Float32Array;
  };
}

/** How a component is kept: every tensor it needs, in the order of the packs. Others are left out. */
export interface ComponentRecipe {
  readonly component: string;
  readonly tensors: readonly TensorRecipe[];
}

import type { ElementType } from '../onnx';

/** What device memory is used for. `runtime` is what ONNX Runtime allocates for itself. */
export const categories = [
  'weights',
  'activations',
  'caches',
  'latents',
  'lora',
  'runtime',
] as const;
export type Category = (typeof categories)[number];

/**
 * Memory on the device with a type and a shape. The code that creates a tensor disposes it, mostly by a
 * {@link Scope}.
 */
export interface DeviceTensor<T extends ElementType = ElementType> {
  readonly dtype: T;
  readonly dims: readonly number[];
  readonly bytes: number;
  readonly category: Category;
  readonly disposed: boolean;
  dispose(): void;
}

/** A tensor of numbers. */
export type ReadableTensor = DeviceTensor<'float32'> | DeviceTensor<'float16'>;
